//! A picture with two axes, drawn with plotters' bitmap backend and a built-in font.

use std::path::Path;

use plotters::prelude::{BitMapBackend, DrawingArea, IntoDrawingArea, PathElement, Rectangle};
use plotters::style::{BLACK, Color, RGBColor, WHITE};

use super::{GREY, font};

const SIZE: (u32, u32) = (960, 400);
/// Room for numbers and names: left, right, top, bottom.
const MARGIN: (i32, i32, i32, i32) = (64, 16, 28, 44);
/// Maximum number of characters of a band's name.
const NAME: usize = 9;
/// Approximate number of ticks of an axis.
const TICKS: f64 = 8.0;

/// The range of an axis.
#[derive(Clone, Copy)]
pub struct Axis<'n> {
    name: &'n str,
    low: f64,
    high: f64,
    is_decades: bool,
    /// Labels at ½, 1½ and so on, instead of numbers.
    names: &'n [String],
}

impl<'n> Axis<'n> {
    /// An ordinary axis.
    pub fn new(name: &'n str, low: f64, high: f64) -> Self {
        Self { name, low, high: high.max(low + 1e-9), is_decades: false, names: &[] }
    }

    /// An axis whose values are logarithms to base 10; its numbers are the powers.
    pub fn decades(name: &'n str, low: f64, high: f64) -> Self {
        Self { is_decades: true, ..Self::new(name, low, high) }
    }

    /// An axis of bands, each one long, with a name each.
    pub fn names(name: &'n str, names: &'n [String]) -> Self {
        Self { names, ..Self::new(name, 0.0, names.len() as f64) }
    }

    fn share(&self, value: f64) -> f64 {
        ((value - self.low) / (self.high - self.low)).clamp(0.0, 1.0)
    }

    /// Places of the ticks with their numbers.
    fn ticks(&self) -> Vec<(f64, String)> {
        if !self.names.is_empty() {
            return self.names.iter().enumerate().map(|(place, name)| (place as f64 + 0.5, name.chars().take(NAME).collect())).collect();
        }
        let rough = (self.high - self.low) / TICKS;
        let scale = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * scale).into_iter().find(|step| *step >= rough).unwrap_or(rough);
        let step = if self.is_decades { 1.0 } else { step };
        let decimals = (-step.log10().floor()).max(0.0) as usize;
        // A bound that misses a tick by rounding alone still shows it.
        let first = (self.low / step - 1e-9).ceil() as i64;
        let last = (self.high / step + 1e-9).floor() as i64;
        let number = |value: f64| match self.is_decades {
            true => format!("{}", 10f64.powi(value.round() as i32)),
            false => format!("{value:.decimals$}"),
        };
        (first..=last).map(|place| place as f64 * step).map(|value| (value, number(value + 0.0))).collect()
    }
}

/// A picture being drawn.
pub struct Chart<'p> {
    area: DrawingArea<BitMapBackend<'p>, plotters::coord::Shift>,
    size: (u32, u32),
    x: Axis<'p>,
    y: Axis<'p>,
}

type Drawn = Result<(), String>;

impl<'p> Chart<'p> {
    /// Begins a white picture.
    pub fn new(path: &'p Path, x: Axis<'p>, y: Axis<'p>) -> Result<Self, String> {
        Self::sized(path, SIZE, x, y)
    }

    /// Begins a white picture of a size in pixels.
    pub fn sized(path: &'p Path, size: (u32, u32), x: Axis<'p>, y: Axis<'p>) -> Result<Self, String> {
        let area = BitMapBackend::new(path, size).into_drawing_area();
        area.fill(&WHITE).map_err(|error| error.to_string())?;
        Ok(Self { area, size, x, y })
    }

    /// Fills the whole width between two values.
    pub fn band(&mut self, low: f64, high: f64, color: RGBColor) -> Drawn {
        self.rectangle((self.x.low, low), (self.x.high, high), color)
    }

    /// Fills a bar from 0 to a value.
    pub fn bar(&mut self, (left, right): (f64, f64), value: f64, color: RGBColor) -> Drawn {
        self.rectangle((left, 0.0), (right, value), color)
    }

    /// Fills rectangles between two corners each, of a pixel at least.
    pub fn cells(&mut self, corners: impl Iterator<Item = ((f64, f64), (f64, f64))>, color: RGBColor) -> Drawn {
        corners.into_iter().try_for_each(|(from, to)| self.rectangle(from, to, color))
    }

    /// Draws a line through the points that are numbers.
    pub fn line(&mut self, points: &[(f64, f64)], color: RGBColor) -> Drawn {
        let finite = points.iter().filter(|(x, y)| x.is_finite() && y.is_finite());
        let path = finite.map(|(x, y)| self.pixel(*x, *y)).collect::<Vec<_>>();
        self.area.draw(&PathElement::new(path, color.stroke_width(1))).map_err(|error| error.to_string())
    }

    /// Draws the frame, ticks, numbers and names.
    pub fn axes(&mut self) -> Drawn {
        let (left, top) = self.pixel(self.x.low, self.y.high);
        let (right, bottom) = self.pixel(self.x.high, self.y.low);
        for (value, number) in self.x.ticks() {
            let (x, _) = self.pixel(value, self.y.low);
            self.segment((x, bottom), (x, bottom + 4), BLACK)?;
            self.text(&number, (x - font::width(&number) / 2, bottom + 9))?;
        }
        for (value, number) in self.y.ticks() {
            let (_, y) = self.pixel(self.x.low, value);
            self.segment((left, y), (right, y), GREY)?;
            self.segment((left - 4, y), (left, y), BLACK)?;
            self.text(&number, (left - 8 - font::width(&number), y - font::HEIGHT / 2))?;
        }
        for (from, to) in [((left, top), (left, bottom)), ((left, bottom), (right, bottom))] {
            self.segment(from, to, BLACK)?;
        }
        self.text(self.x.name, (right - font::width(self.x.name), bottom + 26))?;
        self.text(self.y.name, (left, top - 16))
    }

    /// Writes the file.
    pub fn finish(self) -> Drawn {
        self.area.present().map_err(|error| error.to_string())
    }

    fn pixel(&self, x: f64, y: f64) -> (i32, i32) {
        let (left, right, top, bottom) = MARGIN;
        let (width, height) = (self.size.0 as i32 - left - right, self.size.1 as i32 - top - bottom);
        let x = left + (self.x.share(x) * f64::from(width)).round() as i32;
        (x, top + height - (self.y.share(y) * f64::from(height)).round() as i32)
    }

    fn rectangle(&mut self, from: (f64, f64), to: (f64, f64), color: RGBColor) -> Drawn {
        let corners = [self.pixel(from.0, from.1), self.pixel(to.0, to.1)];
        self.area.draw(&Rectangle::new(corners, color.filled())).map_err(|error| error.to_string())
    }

    fn segment(&mut self, from: (i32, i32), to: (i32, i32), color: RGBColor) -> Drawn {
        self.area.draw(&PathElement::new(vec![from, to], color.stroke_width(1))).map_err(|error| error.to_string())
    }

    fn text(&mut self, text: &str, (left, top): (i32, i32)) -> Drawn {
        for (x, y) in font::pixels(text) {
            self.area.draw_pixel((left + x, top + y), &BLACK).map_err(|error| error.to_string())?;
        }
        Ok(())
    }
}
