#include "chaos/cluster/report_svg.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

namespace baton::chaos {
namespace {

std::string place(double value) { return number(value, 1); }

std::string with_hover(std::string_view element, std::string_view hover) {
  if (hover.empty()) return std::string(element) + "/>\n";
  const std::string name(element.substr(1, element.find(' ') - 1));
  return std::string(element) + "><title>" + escaped(hover) + "</title></" + name + ">\n";
}

std::string time_text(double seconds, double span) {
  if (span >= 3 * 3600) return number(seconds / 3600, 1) + " h";
  if (span >= 300) return number(seconds / 60, 1) + " min";
  return number(seconds, 1) + " s";
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    switch (c) {
      case '&':
        safe += "&amp;";
        break;
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '"':
        safe += "&quot;";
        break;
      default:
        safe += c;
    }
  }
  return safe;
}

std::string number(double value, int digits) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.*f", digits, value);
  std::string s = text.data();
  if (s.find('.') != std::string::npos) {
    s.erase(s.find_last_not_of('0') + 1);
    if (s.back() == '.') s.pop_back();
  }
  return s == "-0" ? "0" : s;
}

std::string duration_text(double milliseconds) {
  const double size = std::abs(milliseconds);
  if (size >= 1000) return number(milliseconds / 1000, size >= 10'000 ? 1 : 2) + " s";
  if (size >= 1 || size == 0) return number(milliseconds, size >= 100 ? 0 : 1) + " ms";
  return number(milliseconds * 1000, 0) + " µs";
}

double Axis::at(double value) const {
  const auto scaled = [this](double v) { return logarithmic ? std::log10(v) : v; };
  const double share = (scaled(value) - scaled(from)) / (scaled(to) - scaled(from));
  return pixel_from + std::clamp(share, 0.0, 1.0) * (pixel_to - pixel_from);
}

std::vector<double> Axis::ticks(int about) const {
  std::vector<double> all;
  if (logarithmic) {
    for (double tick = std::pow(10, std::ceil(std::log10(from) - 1e-9)); tick <= to * 1.0001;
         tick *= 10) {
      all.push_back(tick);
    }
    return all;
  }
  const double rough = (to - from) / about;
  if (!(rough > 0)) return all;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough) {
      step = factor * power;
      break;
    }
  }
  for (double tick = std::ceil(from / step - 1e-9) * step; tick <= to + step * 1e-6; tick += step) {
    all.push_back(tick);
  }
  return all;
}

Picture::Picture(double width, double height) : width_(width), height_(height) {}

void Picture::line(double x1, double y1, double x2, double y2, std::string_view style) {
  body_ += "<line x1=\"" + place(x1) + "\" y1=\"" + place(y1) + "\" x2=\"" + place(x2) +
           "\" y2=\"" + place(y2) + "\" style=\"" + std::string(style) + "\"/>\n";
}

void Picture::rect(double x, double y, double width, double height, std::string_view style,
                   std::string_view hover) {
  body_ +=
      with_hover("<rect x=\"" + place(x) + "\" y=\"" + place(y) + "\" width=\"" + place(width) +
                     "\" height=\"" + place(height) + "\" style=\"" + std::string(style) + "\"",
                 hover);
}

void Picture::path(const std::vector<std::pair<double, double>>& points, std::string_view style,
                   std::string_view hover) {
  if (points.empty()) return;
  std::string list;
  for (const auto& [x, y] : points) list += (list.empty() ? "M" : "L") + place(x) + " " + place(y);
  body_ += with_hover("<path d=\"" + list + "\" style=\"fill:none;stroke-linejoin:round;" +
                          std::string(style) + "\"",
                      hover);
}

void Picture::dot(double x, double y, double radius, std::string_view style,
                  std::string_view hover) {
  body_ += with_hover("<circle cx=\"" + place(x) + "\" cy=\"" + place(y) + "\" r=\"" +
                          place(radius) + "\" style=\"" + std::string(style) + "\"",
                      hover);
}

void Picture::text(double x, double y, std::string_view anchor, std::string_view words,
                   std::string_view style) {
  body_ += "<text x=\"" + place(x) + "\" y=\"" + place(y) + "\" text-anchor=\"" +
           std::string(anchor) + "\" style=\"" + std::string(style) + "\">" + escaped(words) +
           "</text>\n";
}

std::string Picture::done(std::string_view title) const {
  return "<svg viewBox=\"0 0 " + place(width_) + " " + place(height_) +
         "\" role=\"img\" aria-label=\"" + escaped(title) + "\">\n" + body_ + "</svg>\n";
}

void draw_axes(Picture& picture, const Axis& x, const Axis& y, bool x_is_time, bool y_is_duration) {
  for (const double tick : y.ticks(4)) {
    const double at = y.at(tick);
    picture.line(x.pixel_from, at, x.pixel_to, at, "stroke:#e6e4df");
    picture.text(x.pixel_from - 8, at + 4, "end",
                 y_is_duration ? duration_text(tick) : number(tick, 1));
  }
  for (const double tick : x.ticks(8)) {
    const double at = x.at(tick);
    picture.line(at, y.pixel_from, at, y.pixel_from + 4, "stroke:#a8a59d");
    picture.text(at, y.pixel_from + 18, "middle",
                 x_is_time ? time_text(tick, x.to - x.from) : duration_text(tick));
  }
  picture.line(x.pixel_from, y.pixel_from, x.pixel_to, y.pixel_from, "stroke:#a8a59d");
}

}  // namespace baton::chaos
