#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "benchmarks/latency.hpp"

namespace bench {

namespace {

// In pixels.
constexpr double left = 110;
constexpr double right = 40;
constexpr double axis_width = 800;
constexpr double top = 70;
constexpr double row = 16;  ///< of one stage
constexpr double strip = row * latency_stages.size() + 24;
// Milliseconds: what lies outside is drawn at the edge.
constexpr double first = 0.01;
constexpr double last = 1000;

constexpr std::array<std::string_view, latency_stages.size()> colours{"#6b7280", "#2563eb", "#dc2626", "#d97706",
                                                                      "#059669", "#0d9488", "#7c3aed"};

double x_of(double milliseconds) {
  const double within = std::clamp(milliseconds, first, last);
  return left + axis_width * std::log10(within / first) / std::log10(last / first);
}

std::string text(double x, double y, std::string_view anchor, std::string_view style, std::string_view words) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" {}>{}</text>\n", x, y, anchor, style, words);
}

std::string axis(double bottom) {
  std::string svg;
  const auto decades = std::lround(std::log10(last / first));
  for (long decade = 0; decade <= decades; ++decade) {
    const double tick = first * std::pow(10, decade);
    svg += fmt::format("<line x1=\"{0:.1f}\" y1=\"{1}\" x2=\"{0:.1f}\" y2=\"{2}\" stroke=\"#e5e7eb\"/>\n", x_of(tick),
                       top - 6, bottom);
    svg += text(x_of(tick), bottom + 18, "middle", "fill=\"#4b5563\"", fmt::format("{:g} ms", tick));
  }
  return svg;
}

/// A row of a strip: every trial a dot, the median a bar with its number.
std::string stage_row(const std::vector<LatencyTrial>& trials, Variant variant, std::size_t stage, double y) {
  std::string svg;
  for (const auto& trial : trials)
    if (trial.variant == variant && trial.figures[stage])
      svg += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.5\" fill=\"{}\" fill-opacity=\"0.45\"/>\n",
                         x_of(*trial.figures[stage]), y, colours[stage]);
  const auto [median, p90, greatest] = summarize(trials, variant, stage);
  svg += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"3\" height=\"{}\" fill=\"{}\"/>\n", x_of(median) - 1.5,
                     y - row / 2 + 1, row - 2, colours[stage]);
  // Beside the furthest dot, so that it lies on none.
  const double furthest = std::max(x_of(greatest), x_of(median));
  svg += text(furthest + 7, y + 3.5, "start", fmt::format("font-size=\"10\" fill=\"{}\"", colours[stage]),
              fmt::format("{} {:.2f}", latency_stages[stage], median));
  return svg;
}

}  // namespace

std::string latency_svg(const std::vector<LatencyTrial>& trials) {
  const auto variants = variants_of(trials);
  const double bottom = top + strip * static_cast<double>(variants.size());
  const double width = left + axis_width + right + 60;
  auto svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
      "font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
      width, bottom + 40);
  svg += text(left, 26, "start", "font-size=\"16\" fill=\"#111827\"", "From crossing the threshold to free memory");
  svg += text(left, 46, "start", "fill=\"#4b5563\"",
              "milliseconds since the crossing; a dot is a trial, a bar with its number the median");
  svg += axis(bottom);
  double y = top;
  for (const auto variant : variants) {
    svg += fmt::format("<line x1=\"20\" y1=\"{0}\" x2=\"{1}\" y2=\"{0}\" stroke=\"#9ca3af\"/>\n", y - 6, width - 20);
    svg += text(20, y + strip / 2 - 6, "start", "font-weight=\"bold\" fill=\"#111827\"", name(variant));
    for (std::size_t stage = 0; stage < latency_stages.size(); ++stage)
      svg += stage_row(trials, variant, stage, y + row * (static_cast<double>(stage) + 0.5) + 4);
    y += strip;
  }
  return svg + "</svg>\n";
}

}  // namespace bench
