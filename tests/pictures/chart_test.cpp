#include "attend/pictures/chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "attend/base/error.h"
#include "attend/pictures/render.h"
#include "tests/pictures/support.h"

namespace attend {
namespace chart_test {

using testing::HasSubstr;
using testing::Not;

Chart two_lines() {
  return {.title = "Error by length",
          .x_label = "letters",
          .y_label = "error",
          .series = {{"with", {{1, 0.1, 0.05, 0.2}, {2, 0.12, 0.1, 0.2}, {3, 0.2, 0.1, 0.24}}},
                     {"without", {{1, 0.15}, {2, 0.3}, {3, 0.6}}}}};
}

TEST(Chart, DrawsLinesBandsMarkersAndNames) {
  const std::string svg = line_chart_svg(two_lines());
  EXPECT_EQ(count(svg, "<circle"), 6);
  EXPECT_EQ(count(svg, "class=\"f0 band\""), 1);
  EXPECT_EQ(count(svg, "class=\"f1 band\""), 0);
  for (const char* text : {">with<", ">without<", ">letters<", ">error<", ">0.6<", ">0.0<"}) {
    EXPECT_THAT(svg, HasSubstr(text));
  }
  const Pixels pixels = decode_png(render_png(svg));
  EXPECT_EQ(pixels.width, 1440);
  EXPECT_EQ(pixels.height, 880);
}

TEST(Chart, LabelsPercent) {
  Chart chart = two_lines();
  chart.y_as_percent = true;
  EXPECT_THAT(line_chart_svg(chart), HasSubstr(">60 %<"));
}

TEST(Chart, LabelsPowersOfTwo) {
  Chart chart = two_lines();
  chart.series = {{"lines", {{9, 0.1}, {10, 0.2}, {11, 0.3}}}};
  chart.x_powers_of_two = true;
  const std::string svg = line_chart_svg(chart);
  for (const char* label : {">512<", ">1024<", ">2048<"}) EXPECT_EQ(count(svg, label), 1) << label;
  // No tick labels between them, however much room there is.
  const std::string plain = [chart]() mutable {
    chart.x_powers_of_two = false;
    return line_chart_svg(chart);
  }();
  EXPECT_LT(count(svg, "v5\""), count(plain, "v5\""));
}

TEST(Chart, LabelsPowersOfTen) {
  Chart chart = two_lines();
  chart.series = {{"lines", {{1, -3}, {2, -1.5}, {3, 0}}}};
  chart.y_from_zero = false;
  chart.y_powers_of_ten = true;
  const std::string svg = line_chart_svg(chart);
  for (const char* label : {">0.001<", ">0.01<", ">0.1<", ">1<"})
    EXPECT_GE(count(svg, label), 1) << label;
  EXPECT_EQ(count(svg, ">0.0316228<"), 0);
}

TEST(Chart, EscapesTexts) {
  Chart chart = two_lines();
  chart.title = chart.x_label = chart.y_label = chart.series[0].name = "<script>&\x01";
  const std::string svg = line_chart_svg(chart);
  EXPECT_EQ(count(svg, "<script"), 0);
  EXPECT_GT(decode_png(render_png(svg)).width, 0);
}

TEST(Chart, InterruptsLinesWhereThereIsNoNumber) {
  Chart chart = two_lines();
  chart.series[1].points[1].y = std::numeric_limits<double>::quiet_NaN();
  const std::string svg = line_chart_svg(chart);
  EXPECT_EQ(count(svg, "<circle"), 5);
  EXPECT_EQ(count(svg, "nan"), 0);
}

TEST(Chart, DrawsDegenerateRanges) {
  const double tiny = std::numeric_limits<double>::denorm_min();
  const std::vector<std::vector<ChartPoint>> cases = {
      {},
      {{0, 0}},
      {{5, 5}},
      {{-3, -7}, {-3, -7}},
      {{1, 1e15}, {2, 1e15 + 1}},
      {{1, tiny}, {2, 2 * tiny}},
      {{1, -1e100}, {2, 1e100}},
      {{std::numeric_limits<double>::infinity(), 1}}};
  for (const auto& points : cases) {
    for (const bool from_zero : {false, true}) {
      const std::string svg = line_chart_svg({.title = "",
                                              .x_label = "",
                                              .y_label = "",
                                              .series = {{"", points}},
                                              .y_from_zero = from_zero});
      EXPECT_THAT(svg, Not(HasSubstr("nan")));
      EXPECT_THAT(svg, Not(HasSubstr("inf")));
      EXPECT_LT(svg.size(), 8000u);
      EXPECT_GT(decode_png(render_png(svg, 1)).width, 0);
    }
  }
}

TEST(Chart, RefusesWhatItCannotShow) {
  Chart chart = two_lines();
  chart.width = 100;
  EXPECT_THROW(line_chart_svg(chart), Error);
  chart = two_lines();
  chart.height = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THROW(line_chart_svg(chart), Error);
  chart = two_lines();
  chart.series.resize(25);
  EXPECT_THROW(line_chart_svg(chart), Error);
  chart = two_lines();
  chart.series[0].points.resize(1'000'001);
  EXPECT_THROW(line_chart_svg(chart), Error);
  chart = two_lines();
  chart.series[0].points[0].y = 1e101;
  EXPECT_THROW(line_chart_svg(chart), Error);
}

TEST(RenderPng, RefusesWhatItCannotDraw) {
  const std::string svg = line_chart_svg(two_lines());
  const std::string start = "<svg xmlns=\"http://www.w3.org/2000/svg\" ";
  EXPECT_THROW(render_png(""), Error);
  EXPECT_THROW(render_png("no picture"), Error);
  EXPECT_THROW(render_png(svg.substr(0, svg.size() / 2)), Error);
  EXPECT_THROW(render_png(start + "width=\"100%\" height=\"100%\"/>"), Error);
  EXPECT_THROW(render_png(start + "width=\"0\" height=\"9\"/>"), Error);
  EXPECT_THROW(render_png(start + "width=\"1e9\" height=\"9\"/>"), Error);
  EXPECT_THROW(render_png(start + "width=\"20000\" height=\"20000\"/>", 1), Error);
  EXPECT_THROW(render_png("<!DOCTYPE svg [<!ENTITY a 'b'>]>" + svg), Error);
  for (const double scale : {0.0, -1.0, 17.0, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_THROW(render_png(svg, scale), Error) << scale;
  }
}

TEST(RenderPng, ScalesThePicture) {
  const std::string svg = line_chart_svg(two_lines());
  EXPECT_EQ(decode_png(render_png(svg, 1)).width, 720);
  EXPECT_EQ(decode_png(render_png(svg, 0.5)).height, 220);
}

}  // namespace chart_test
}  // namespace attend
