// Draws the plots of the report as SVG: a picture with two axes.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace baton::chaos {

std::string escaped(std::string_view text);
std::string number(double value, int digits = 1);  // without trailing zeros
std::string duration_text(double milliseconds);    // "850 µs", "12 ms", "3.4 s"

// Maps values to pixels along one side of a picture.
struct Axis {
  double from = 0, to = 1;  // values
  double pixel_from = 0, pixel_to = 1;
  bool logarithmic = false;
  double at(double value) const;
  std::vector<double> ticks(int about) const;
};

class Picture {
 public:
  Picture(double width, double height);

  void line(double x1, double y1, double x2, double y2, std::string_view style);
  void rect(double x, double y, double width, double height, std::string_view style,
            std::string_view hover = {});
  void path(const std::vector<std::pair<double, double>>& points, std::string_view style,
            std::string_view hover = {});
  void dot(double x, double y, double radius, std::string_view style, std::string_view hover = {});
  // anchor: start, middle or end
  void text(double x, double y, std::string_view anchor, std::string_view words,
            std::string_view style = {});

  std::string done(std::string_view title) const;  // the title is the text for screen readers

 private:
  double width_, height_;
  std::string body_;
};

// The common frame of a plot: light grid lines, numbers on the left and below.
void draw_axes(Picture& picture, const Axis& x, const Axis& y, bool x_is_time, bool y_is_duration);

}  // namespace baton::chaos
