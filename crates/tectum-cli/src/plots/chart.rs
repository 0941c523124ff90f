//! A chart with two axes: a list of shapes, drawn as PNG or as SVG by plotters. Text is DejaVu
//! Sans, which the crate `dejavu` carries, so that pictures look the same on a machine without
//! fonts; a viewer of SVG uses its own sans serif.

use std::path::Path;
use std::sync::Once;

use plotters::coord::Shift;
use plotters::prelude::{
    BitMapBackend, DrawingArea, DrawingBackend, IntoDrawingArea, IntoFont, PathElement, Rectangle,
    SVGBackend, Text,
};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{
    BLACK, Color, FontStyle, FontTransform, RGBColor, TextStyle, WHITE, register_font,
};
use tectum::{Result, file};

const FONT: &str = "sans-serif";
/// Heights of lines of text in pixels.
const TITLE: f64 = 19.0;
const LABEL: f64 = 16.0;
const NUMBER: f64 = 14.0;
/// A backend's place of a text is this part of the height above the base line.
const PNG_RISE: f64 = 0.5;
const SVG_RISE: f64 = 0.613;
/// Room above, below and to the right of the axes.
const TOP: i32 = 64;
const BOTTOM: i32 = 56;
const RIGHT: i32 = 28;
/// Room to the left of the axes' numbers, for the name.
const NAME_ROOM: i32 = 44;
/// The left edge of a title or legend that is wider than the axes.
const MARGIN: i32 = 14;
/// Height of a line of texts to the right of the axes.
const NUMBER_LINE: f64 = 15.0;
/// The base line of the legend, below the title.
const LEGEND: i32 = 51;
/// Minimum height of a bar in pixels.
const MIN_BAR: i32 = 3;
/// Room for a scale of colours.
const SCALE: i32 = 104;
/// Approximate number of ticks of an axis.
const TICKS: f64 = 8.0;
/// A chart of more shapes has no SVG: viewers are slow with it.
const MAX_SVG_SHAPES: usize = 50_000;
const GREY: RGBColor = RGBColor(225, 225, 225);
/// Steps between ticks, as multiples of a power of ten; of degrees, as they are.
const STEPS: [f64; 4] = [1.0, 2.0, 5.0, 10.0];
const DEGREES: [f64; 8] = [1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 45.0, 90.0];
/// A logarithmic axis of more decades has ticks at powers of ten alone.
const MAX_FINE_DECADES: f64 = 3.0;

/// The range of an axis.
#[derive(Clone)]
pub struct Axis {
    /// What it shows, with the unit.
    name: String,
    low: f64,
    high: f64,
    scale: Scale,
    /// Labels at their places, instead of numbers.
    labels: Vec<(f64, String)>,
}

/// How the ticks of an axis are chosen.
#[derive(Clone, Copy, PartialEq)]
enum Scale {
    Linear,
    Degrees,
    /// Values are logarithms to base 10.
    Decades,
}

impl Axis {
    /// An ordinary axis.
    pub fn new(name: impl Into<String>, low: f64, high: f64) -> Self {
        Self {
            name: name.into(),
            low,
            high: high.max(low + 1e-9),
            scale: Scale::Linear,
            labels: Vec::new(),
        }
    }

    /// An axis of degrees, whose ticks divide a turn.
    pub fn degrees(name: impl Into<String>, low: f64, high: f64) -> Self {
        Self {
            scale: Scale::Degrees,
            ..Self::new(name, low, high)
        }
    }

    /// An axis whose values are logarithms to base 10; its numbers are the powers.
    pub fn decades(name: impl Into<String>, low: f64, high: f64) -> Self {
        Self {
            scale: Scale::Decades,
            ..Self::new(name, low, high)
        }
    }

    /// An axis from 0 with labels at their places instead of numbers.
    pub fn labels(name: impl Into<String>, high: f64, labels: Vec<(f64, String)>) -> Self {
        Self {
            labels,
            ..Self::new(name, 0.0, high)
        }
    }

    fn share(&self, value: f64) -> f64 {
        ((value - self.low) / (self.high - self.low)).clamp(0.0, 1.0)
    }

    /// Places of the ticks with their numbers.
    fn ticks(&self) -> Vec<(f64, String)> {
        if !self.labels.is_empty() {
            return self.labels.clone();
        }
        let rough = (self.high - self.low) / TICKS;
        let scale = 10f64.powf(rough.log10().floor());
        let step = match self.scale {
            Scale::Linear => STEPS
                .map(|factor| factor * scale)
                .into_iter()
                .find(|step| *step >= rough),
            Scale::Degrees => DEGREES.into_iter().find(|step| *step >= rough),
            Scale::Decades => return self.decade_ticks(),
        };
        let step = step.unwrap_or(rough);
        let decimals = (-step.log10().floor()).max(0.0) as usize;
        // A bound that misses a tick by rounding alone still shows it.
        let first = (self.low / step - 1e-9).ceil() as i64;
        let last = (self.high / step + 1e-9).floor() as i64;
        let number = |value: f64| format!("{value:.decimals$}").replace('-', "−");
        (first..=last)
            .map(|place| place as f64 * step)
            .map(|value| (value, number(value + 0.0)))
            .collect()
    }

    /// Powers of ten and, between a few of them, their doubles and fivefolds.
    fn decade_ticks(&self) -> Vec<(f64, String)> {
        let is_inside = |value: &f64| (self.low - 1e-9..=self.high + 1e-9).contains(value);
        let factors: &[f64] = if self.high - self.low > MAX_FINE_DECADES {
            &[1.0]
        } else {
            &[1.0, 2.0, 5.0]
        };
        // No float is beyond these powers; a bound may be that of zero, which is infinite.
        let power = |bound: f64| bound.clamp(-400.0, 400.0) as i32;
        let powers = (power(self.low.floor())..=power(self.high.ceil()))
            .flat_map(|power| factors.iter().map(move |factor| (power, *factor)));
        let ticks = powers.map(|(power, factor)| {
            (
                f64::from(power) + factor.log10(),
                format!(
                    "{:.*}",
                    (-power).max(0) as usize,
                    factor * 10f64.powi(power)
                ),
            )
        });
        ticks.filter(|(value, _)| is_inside(value)).collect()
    }
}

/// Something drawn, in pixels.
enum Shape {
    Fill([(i32, i32); 2], RGBColor),
    Path(Vec<(i32, i32)>, RGBColor, u32),
    Text(Label),
}

/// A line of text.
struct Label {
    text: String,
    /// A point of its base line.
    at: (i32, i32),
    /// Which side of the text that point is.
    side: HPos,
    height: f64,
    /// Whether it is read upwards.
    is_upright: bool,
}

/// A chart.
pub struct Chart {
    size: (u32, u32),
    /// The left and right edges of the axes.
    edges: (i32, i32),
    x: Axis,
    y: Axis,
    shapes: Vec<Shape>,
    /// Where the next entry of the legend begins.
    legend_left: i32,
}

impl Chart {
    /// Begins a chart of the usual size.
    pub fn new(title: &str, x: Axis, y: Axis) -> Self {
        Self::sized((800, 420), title, x, y)
    }

    /// Begins a chart of a size in pixels.
    pub fn sized(size: (u32, u32), title: &str, x: Axis, y: Axis) -> Self {
        let widest = y
            .ticks()
            .iter()
            .map(|(_, number)| width(number, NUMBER))
            .max()
            .unwrap_or(0);
        let (left, right) = (widest + NAME_ROOM, size.0 as i32 - RIGHT);
        let mut chart = Self {
            size,
            edges: (left, right),
            x,
            y,
            shapes: Vec::new(),
            legend_left: left,
        };
        // A title that is too long from there begins at the edge of the picture.
        let title_left = if left + width(title, TITLE) > right {
            left.min(MARGIN)
        } else {
            left
        };
        chart.text(
            &fitted(title, TITLE, right - title_left),
            (title_left, 28),
            HPos::Left,
            TITLE,
        );
        chart
    }

    /// Begins a chart whose axes have a size in pixels, with room for texts on their right side.
    pub fn around(axes: (u32, u32), right: u32, title: &str, x: Axis, y: Axis) -> Self {
        let widest = y
            .ticks()
            .iter()
            .map(|(_, number)| width(number, NUMBER))
            .max()
            .unwrap_or(0) as u32;
        let size = (
            widest + NAME_ROOM as u32 + axes.0 + right + RIGHT as u32,
            axes.1 + (TOP + BOTTOM) as u32,
        );
        let mut chart = Self::sized(size, title, x, y);
        chart.edges.1 -= right as i32;
        chart
    }

    /// Writes a text to the right of the axes; `line` lines below the height of a value.
    pub fn margin_text(&mut self, y: f64, line: f64, text: &str) {
        let (_, height) = self.pixel(self.x.low, y);
        self.text(
            text,
            (
                self.edges.1 + 8,
                height + 5 + (line * NUMBER_LINE).round() as i32,
            ),
            HPos::Left,
            NUMBER,
        );
    }

    /// Leaves room for a scale of colours, and draws it: from −`most` below to `most` above.
    pub fn scale(&mut self, name: &str, most: f64, color: impl Fn(f64) -> RGBColor) {
        self.edges.1 -= SCALE;
        let (left, top, bottom) = (self.edges.1 + 28, TOP, self.size.1 as i32 - BOTTOM);
        let steps = 64;
        let y = |step: i32| bottom - (bottom - top) * step / steps;
        for step in 0..steps {
            let share = 2.0 * (f64::from(step) + 0.5) / f64::from(steps) - 1.0;
            self.shapes.push(Shape::Fill(
                [(left, y(step + 1)), (left + 14, y(step))],
                color(share),
            ));
        }
        for (share, step) in [(-1.0, 0), (0.0, steps / 2), (1.0, steps)] {
            self.text(
                &scale_number(share * most + 0.0, most),
                (left + 20, y(step) + 5),
                HPos::Left,
                NUMBER,
            );
        }
        self.text(
            name,
            (self.size.0 as i32 - RIGHT, bottom + 42),
            HPos::Right,
            LABEL,
        );
    }

    /// Adds an entry to the legend below the title, to the right of those before it.
    pub fn legend(&mut self, name: &str, color: RGBColor) {
        let left = self.legend_left;
        self.shapes.push(Shape::Fill(
            [(left, LEGEND - 11), (left + 16, LEGEND + 1)],
            color,
        ));
        self.text(name, (left + 22, LEGEND), HPos::Left, NUMBER);
        self.legend_left = left + 22 + width(name, NUMBER) + 20;
    }

    /// Draws a vertical line through the whole height.
    pub fn mark(&mut self, x: f64, color: RGBColor) {
        let (from, to) = (self.pixel(x, self.y.low), self.pixel(x, self.y.high));
        self.segment(from, to, color);
    }

    /// Fills the whole width between two values.
    pub fn band(&mut self, low: f64, high: f64, color: RGBColor) {
        self.cell((self.x.low, low), (self.x.high, high), color);
    }

    /// Fills a bar from 0 to a value; a bar of few among many is still seen.
    pub fn bar(&mut self, (left, right): (f64, f64), value: f64, color: RGBColor) {
        let [(left, bottom), (right, top)] = [self.pixel(left, 0.0), self.pixel(right, value)];
        let top = if value > 0.0 {
            top.min(bottom - MIN_BAR)
        } else {
            top
        };
        self.shapes
            .push(Shape::Fill([(left, top), (right, bottom)], color));
    }

    /// Fills a rectangle between two corners, of a pixel at least.
    pub fn cell(&mut self, from: (f64, f64), to: (f64, f64), color: RGBColor) {
        let corners = [self.pixel(from.0, from.1), self.pixel(to.0, to.1)];
        self.shapes.push(Shape::Fill(corners, color));
    }

    /// Draws a line through the points that are numbers.
    pub fn line(&mut self, points: &[(f64, f64)], color: RGBColor) {
        let finite = points
            .iter()
            .filter(|(x, y)| x.is_finite() && y.is_finite());
        let path = finite.map(|(x, y)| self.pixel(*x, *y)).collect::<Vec<_>>();
        self.shapes.push(Shape::Path(path, color, 2));
    }

    /// Draws the frame, ticks, numbers and names.
    pub fn axes(&mut self) {
        let (left, top) = self.pixel(self.x.low, self.y.high);
        let (right, bottom) = self.pixel(self.x.high, self.y.low);
        for (value, number) in self.x.ticks() {
            let (x, _) = self.pixel(value, self.y.low);
            self.segment((x, bottom), (x, bottom + 5), BLACK);
            self.text(&number, (x, bottom + 20), HPos::Center, NUMBER);
        }
        for (value, number) in self.y.ticks() {
            let (_, y) = self.pixel(self.x.low, value);
            if self.y.labels.is_empty() {
                self.segment((left, y), (right, y), GREY);
                self.segment((left - 5, y), (left, y), BLACK);
            }
            self.text(&number, (left - 9, y + 5), HPos::Right, NUMBER);
        }
        for (from, to) in [
            ((left, top), (left, bottom)),
            ((left, bottom), (right, bottom)),
        ] {
            self.segment(from, to, BLACK);
        }
        let (x, y) = (self.x.name.clone(), self.y.name.clone());
        self.text(&x, ((left + right) / 2, bottom + 42), HPos::Center, LABEL);
        let upright = Label {
            text: y,
            at: (20, (top + bottom) / 2),
            side: HPos::Center,
            height: LABEL,
            is_upright: true,
        };
        self.shapes.push(Shape::Text(upright));
    }

    /// Writes `NAME.png` and, unless it is too large, `NAME.svg` into a folder; returns their
    /// names.
    ///
    /// # Errors
    /// `Data` or `Io`, naming the path, for a picture that cannot be written.
    pub fn save_both(&self, folder: &Path, name: &str) -> Result<Vec<String>> {
        let endings = ["png", "svg"]
            .into_iter()
            .filter(|ending| *ending == "png" || self.shapes.len() <= MAX_SVG_SHAPES);
        let names: Vec<String> = endings.map(|ending| format!("{name}.{ending}")).collect();
        names
            .iter()
            .try_for_each(|name| self.save(&folder.join(name)))?;
        Ok(names)
    }

    /// Writes a file: SVG if its name ends so, else PNG.
    ///
    /// # Errors
    /// As [`Chart::save_both`].
    pub fn save(&self, path: &Path) -> Result<()> {
        file::write_with(path, |path| {
            if path.extension().is_some_and(|ending| ending == "svg") {
                self.draw(
                    &SVGBackend::new(path, self.size).into_drawing_area(),
                    SVG_RISE,
                )
            } else {
                self.draw(
                    &BitMapBackend::new(path, self.size).into_drawing_area(),
                    PNG_RISE,
                )
            }
        })
    }

    /// Draws onto a bitmap.
    ///
    /// # Errors
    /// What the backend reports.
    pub fn draw_bitmap(
        &self,
        area: &DrawingArea<BitMapBackend<'_>, Shift>,
    ) -> std::result::Result<(), String> {
        self.draw(area, PNG_RISE)
    }

    fn draw<B: DrawingBackend>(
        &self,
        area: &DrawingArea<B, Shift>,
        rise: f64,
    ) -> std::result::Result<(), String> {
        let fault = |error: &dyn std::fmt::Display| error.to_string();
        area.fill(&WHITE).map_err(|error| fault(&error))?;
        for shape in &self.shapes {
            let drawn = match shape {
                Shape::Fill(corners, color) => area.draw(&Rectangle::new(*corners, color.filled())),
                Shape::Path(points, color, wide) => {
                    area.draw(&PathElement::new(points.clone(), color.stroke_width(*wide)))
                }
                Shape::Text(label) => {
                    let up = (rise * label.height).round() as i32;
                    let transform = if label.is_upright {
                        FontTransform::Rotate270
                    } else {
                        FontTransform::None
                    };
                    let at = if label.is_upright {
                        (label.at.0 - up, label.at.1)
                    } else {
                        (label.at.0, label.at.1 - up)
                    };
                    let style =
                        TextStyle::from((FONT, label.height).into_font().transform(transform))
                            .color(&BLACK)
                            .pos(Pos::new(label.side, VPos::Top));
                    area.draw(&Text::new(label.text.as_str(), at, style))
                }
            };
            drawn.map_err(|error| fault(&error))?;
        }
        area.present().map_err(|error| fault(&error))
    }

    fn pixel(&self, x: f64, y: f64) -> (i32, i32) {
        let (left, right) = self.edges;
        let height = self.size.1 as i32 - TOP - BOTTOM;
        let x = left + (self.x.share(x) * f64::from(right - left)).round() as i32;
        (
            x,
            TOP + height - (self.y.share(y) * f64::from(height)).round() as i32,
        )
    }

    fn segment(&mut self, from: (i32, i32), to: (i32, i32), color: RGBColor) {
        self.shapes.push(Shape::Path(vec![from, to], color, 1));
    }

    fn text(&mut self, text: &str, at: (i32, i32), side: HPos, height: f64) {
        self.shapes.push(Shape::Text(Label {
            text: text.to_owned(),
            at,
            side,
            height,
            is_upright: false,
        }));
    }
}

/// A number of a scale that goes up to `most`, with two digits that count.
fn scale_number(value: f64, most: f64) -> String {
    let decimals = (1.0 - most.log10().floor()).max(0.0) as usize;
    let text = if decimals > 5 && value != 0.0 {
        format!("{value:.1e}")
    } else {
        format!("{value:.*}", decimals.min(5))
    };
    text.replace('-', "−")
}

/// A text, cut where it is wider than a number of pixels.
fn fitted(text: &str, height: f64, room: i32) -> String {
    let (mut shown, mut end) = (text.to_owned(), text.len());
    while width(&shown, height) > room && end > 0 {
        end = text[..end]
            .char_indices()
            .next_back()
            .map_or(0, |(start, _)| start);
        shown = format!("{}…", text[..end].trim_end());
    }
    shown
}

/// Width of a text in pixels.
fn width(text: &str, height: f64) -> i32 {
    static FONTS: Once = Once::new();
    FONTS.call_once(|| {
        // A font that cannot be read is reported where text is drawn.
        let _ = register_font(FONT, FontStyle::Normal, dejavu::sans::regular());
    });
    (FONT, height)
        .into_font()
        .box_size(text)
        .map_or(0, |(width, _)| width as i32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chart_is_a_png_of_its_size_and_an_svg_with_its_texts() {
        let folder = std::env::temp_dir().join(format!("tectum-chart-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("writable");
        let mut chart = Chart::new(
            "A title",
            Axis::new("time (s)", -1.0, 2.0),
            Axis::decades("latency (ms)", -1.0, 1.0),
        );
        chart.axes();
        chart.line(&[(0.0, 0.0), (2.0, 0.5), (f64::NAN, 0.0)], BLACK);
        chart.legend("volts", BLACK);
        assert_eq!(
            chart.save_both(&folder, "chart").expect("writable"),
            ["chart.png", "chart.svg"]
        );
        let read = |name: &str| std::fs::read(folder.join(name)).expect("there");
        let (png, svg) = (
            read("chart.png"),
            String::from_utf8(read("chart.svg")).expect("text"),
        );
        std::fs::remove_dir_all(&folder).expect("ours");
        assert_eq!(
            (&png[..8], &png[16..24]),
            (
                &b"\x89PNG\r\n\x1a\n"[..],
                &[0, 0, 0x03, 0x20, 0, 0, 0x01, 0xA4][..]
            )
        );
        for text in [
            "A title",
            "time (s)",
            "latency (ms)",
            "volts",
            "0.1",
            "−1.0",
        ] {
            assert!(svg.contains(text), "{text}: {svg}");
        }
    }

    #[test]
    fn ticks_divide_a_turn_and_a_few_decades() {
        let numbers = |axis: Axis| {
            axis.ticks()
                .into_iter()
                .map(|(_, number)| number)
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(
            numbers(Axis::degrees("angle", -180.0, 180.0)),
            "−180 −135 −90 −45 0 45 90 135 180"
        );
        assert_eq!(
            numbers(Axis::degrees("angle", -15.0, 15.0)),
            "−15 −10 −5 0 5 10 15"
        );
        assert_eq!(
            numbers(Axis::decades("ms", -1.0, 1.0)),
            "0.1 0.2 0.5 1 2 5 10"
        );
        assert_eq!(numbers(Axis::decades("ms", -2.0, 2.0)), "0.01 0.1 1 10 100");
        assert_eq!(numbers(Axis::new("time", 0.0, 60.0)), "0 10 20 30 40 50 60");
    }

    #[test]
    fn a_title_that_is_too_long_is_cut_with_a_mark() {
        let room = 300;
        assert_eq!(fitted("short", TITLE, room), "short");
        let shown = fitted(&"a long title ".repeat(20), TITLE, room);
        assert!(
            shown.ends_with('…')
                && width(&shown, TITLE) <= room
                && width(&shown, TITLE) > room - 40,
            "{shown}"
        );
    }

    /// Titles are above the legend, whose entries do not overlap.
    #[test]
    fn entries_of_a_legend_follow_each_other_below_the_title() {
        let mut chart = Chart::new(
            "A title",
            Axis::new("x", 0.0, 1.0),
            Axis::new("y", 0.0, 1.0),
        );
        chart.legend("the first of them", BLACK);
        chart.legend("the second", BLACK);
        let labels: Vec<&Label> = chart
            .shapes
            .iter()
            .filter_map(|shape| {
                if let Shape::Text(label) = shape {
                    Some(label)
                } else {
                    None
                }
            })
            .collect();
        let [title, first, second] = labels[..] else {
            panic!("{} labels", labels.len())
        };
        assert!(title.at.1 + 10 < first.at.1 && first.at.1 == second.at.1 && first.at.1 < TOP);
        assert!(first.at.0 + width("the first of them", NUMBER) < second.at.0);
    }

    #[test]
    fn numbers_of_a_scale_have_digits_that_count() {
        assert_eq!(
            [(0.5, 0.5), (-0.0031, 0.0031), (120.0, 120.0), (2e-9, 2e-9)]
                .map(|(value, most)| scale_number(value, most)),
            ["0.50", "−0.0031", "120", "2.0e−9"]
        );
    }

    #[test]
    fn a_bar_of_one_among_thousands_is_seen() {
        let mut chart = Chart::new(
            "A title",
            Axis::new("x", 0.0, 1.0),
            Axis::new("y", 0.0, 10_000.0),
        );
        chart.bar((0.0, 0.5), 1.0, BLACK);
        let Some(Shape::Fill([(_, top), (_, bottom)], _)) = chart.shapes.last() else {
            panic!("a bar")
        };
        assert_eq!(bottom - top, MIN_BAR);
    }

    #[test]
    fn texts_are_drawn_in_a_font_with_widths() {
        assert!(width("iii", LABEL) < width("WWW", LABEL) && width("10", LABEL) > 10);
    }
}
