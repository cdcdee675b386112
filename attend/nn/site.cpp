#include "attend/nn/site.h"

#include <utility>

namespace attend {
namespace {

const Site nowhere;
thread_local const Site* current_site = &nowhere;
thread_local const VectorWatch* current_vector_watch = nullptr;

}  // namespace

bool same_site(const Site& a, const Site& b) {
  return a.part == b.part && a.layer == b.layer && a.reads_source == b.reads_source;
}

SiteScope::SiteScope(Site site)
    : site_(std::move(site)), outer_(std::exchange(current_site, &site_)) {}

SiteScope::~SiteScope() { current_site = outer_; }

const Site& SiteScope::current() { return *current_site; }

VectorWatch::VectorWatch(Answer answer)
    : answer_(std::move(answer)), outer_(std::exchange(current_vector_watch, this)) {}

VectorWatch::~VectorWatch() { current_vector_watch = outer_; }

const VectorWatch* VectorWatch::current() { return current_vector_watch; }

at::Tensor watched(WatchedVectors which, const at::Tensor& vectors) {
  return current_vector_watch == nullptr ? vectors : current_vector_watch->answer_(which, vectors);
}

}  // namespace attend
