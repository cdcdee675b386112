#include "attend/models/model_size.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>

#include "attend/base/error.h"
#include "attend/base/memory.h"
#include "attend/nn/without_storage.h"

namespace attend {
namespace {

// Per weight: its value, average, two moments and decay flag; per replica, its gradient and the
// amount that backward adds to it. Resuming from a checkpoint needs four numbers twice, as file
// bytes and as tensors.
constexpr int64_t numbers_per_weight(int64_t replicas) { return 5 + 2 * replicas + 8; }

// Memory limit per process of `processes` on this machine. A limit of the process itself (ulimit
// -v) is not divided; if it is the smallest limit, physical memory is divided instead.
int64_t memory_of_each(int64_t processes) {
  const int64_t least = memory_limit();
  rlimit own{};
  const bool is_own = getrlimit(RLIMIT_AS, &own) == 0 && own.rlim_cur == static_cast<rlim_t>(least);
  if (!is_own) return least / processes;
  return std::min<int64_t>(least, sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE) / processes);
}

std::string gigabytes(int64_t bytes) {
  return fmt::format("{:.1f} GB", static_cast<double>(bytes) / 1e9);
}

Settings settings_of(PairModel& model) {
  Settings all = model.text.settings();
  append(all, model.config.settings());
  return all;
}

std::string assignment(const Setting& setting) {
  return std::visit(
      [&](const auto& value) {
        using Type = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<Type, NamedVariable>)
          return fmt::format("{} = {}", setting.key, in_quotes(value.name()));
        else if constexpr (std::is_same_v<Type, std::string*>)
          return fmt::format("{} = {}", setting.key, in_quotes(*value));
        else
          return fmt::format("{} = {}", setting.key, *value);
      },
      setting.value);
}

void copy_value(const Setting& from, const Setting& to) {
  std::visit(
      [&](const auto& value) {
        const auto& other = std::get<std::decay_t<decltype(value)>>(from.value);
        if constexpr (std::is_same_v<std::decay_t<decltype(value)>, NamedVariable>)
          value.set(other.name());
        else
          *value = *other;
      },
      to.value);
}

}  // namespace

std::shared_ptr<PairNetwork> outline(const PairModel& model) {
  const WithoutStorage without_storage;
  return model.make_network();
}

int64_t parameter_bytes(const PairModel& model) {
  int64_t bytes = 0;
  for (const at::Tensor& parameter : outline(model)->parameters())
    bytes += parameter.numel() * static_cast<int64_t>(parameter.element_size());
  return bytes;
}

std::string largest_part(const PairModel& model) {
  const int64_t bytes = parameter_bytes(model);
  PairModel usual;
  usual.config.type = model.config.type;
  // These decide which settings exist.
  usual.text.format = model.text.format;
  usual.text.source_units = model.text.source_units;
  usual.text.target = model.text.target;
  const Settings defaults = settings_of(usual);
  double maximum = 0;
  std::string largest = "the vocabularies ask for most of them";
  for (size_t i = 0; i < defaults.size(); ++i) {
    PairModel changed = model;
    const Setting setting = settings_of(changed)[i];
    const std::string text = assignment(setting);
    copy_value(defaults[i], setting);
    try {
      const int64_t saved = bytes - parameter_bytes(changed);
      // If a text setting and a number setting save equally much, report the number.
      const bool is_word = std::holds_alternative<std::string*>(setting.value) ||
                           std::holds_alternative<NamedVariable>(setting.value);
      const double weight = static_cast<double>(saved) * (is_word ? 0.99 : 1);
      if (weight <= maximum) continue;
      maximum = weight;
      largest = fmt::format("{} asks for {} of them", text, gigabytes(saved));
    } catch (const Error&) {
      // The default contradicts the other settings.
    }
  }
  return largest;
}

void check_copies(const PairModel& model, double copies, const std::string& use) {
  const int64_t bytes = parameter_bytes(model), limit = memory_limit();
  if (static_cast<double>(bytes) * copies <= static_cast<double>(limit)) return;
  fail("the model's weights take {}, and {} {} times that; this process may use {}: {}",
       gigabytes(bytes), use, copies, gigabytes(limit), largest_part(model));
}

void check_memory(const PairModel& model, int64_t replicas, int64_t processes) {
  const int64_t bytes = parameter_bytes(model), maximum = memory_of_each(processes);
  const int64_t numbers = numbers_per_weight(replicas);
  if (bytes <= maximum / numbers) return;
  const bool is_single = processes == 1;
  fail(
      "the model's weights take {}, and training {} times that{}; {} may use {}: {}; take a "
      "smaller model, or fewer replicas{}",
      gigabytes(bytes), numbers,
      is_single ? "" : fmt::format(" in each of {} processes", processes),
      is_single ? "this process" : "each", gigabytes(maximum), largest_part(model),
      is_single ? "" : " or processes");
}

}  // namespace attend
