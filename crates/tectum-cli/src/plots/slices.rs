//! Pictures of a field: slices through its middle, `field_xy`, `field_xz` and `field_yz`, and `field.gif`, an animation of the first of them.

use std::path::Path;

use plotters::prelude::{BitMapBackend, IntoDrawingArea, Rectangle};
use plotters::style::{Color, RGBColor};
use tectum::snapshot::Snapshot;
use tectum::{Result, file};
use tectum_control::closed_loop::{Sink, TickRecord};
use tectum_field::Shape;

use super::chart::{Axis, Chart};

/// The slices: name, and the axes across and up.
const SLICES: [(&str, [usize; 2]); 3] = [("xy", [0, 1]), ("xz", [0, 2]), ("yz", [1, 2])];
const AXES: [&str; 3] = ["x (cells)", "y (cells)", "z (cells)"];

/// Maximum number of frames of an animation; if there are more, every second one is dropped.
const FRAMES: usize = 256;
/// The side of an animation's cell in pixels, and the duration of a frame in milliseconds.
const PIXELS: u32 = 12;
const FRAME_MS: u32 = 100;

/// The mean content of each cell of a field.
struct Means {
    cells: [usize; 3],
    means: Vec<f32>,
}

impl Means {
    /// The means of a run's snapshot, if its brain is a field.
    fn of(snapshot: &Snapshot) -> Result<Option<Self>> {
        let brain = snapshot.part("brain");
        if brain.len_of("field").is_none() {
            return Ok(None);
        }
        let sizes: Vec<usize> = brain.u64("shape", 4)?.iter().map(|size| *size as usize).collect();
        let shape = Shape::new([sizes[0], sizes[1], sizes[2]], sizes[3])?;
        let field = brain.f32("field", shape.elements())?;
        let mean = |cell: &[f32]| cell[..shape.content()].iter().sum::<f32>() / shape.content() as f32;
        Ok(Some(Self { cells: shape.cells(), means: field.chunks_exact(shape.channels()).map(mean).collect() }))
    }

    /// The slice through the middle, by place along its axes.
    fn slice(&self, [across, up]: [usize; 2]) -> impl Iterator<Item = ([usize; 2], f64)> {
        let places = (0..self.cells[across]).flat_map(move |x| (0..self.cells[up]).map(move |y| [x, y]));
        places.map(move |at| {
            let mut place = self.cells.map(|size| size / 2);
            (place[across], place[up]) = (at[0], at[1]);
            (at, f64::from(self.means[(place[0] * self.cells[1] + place[1]) * self.cells[2] + place[2]]))
        })
    }
}

/// Draws the field at the end of a run, if its brain is one: the mean content of each cell, from blue through white to red, scaled to the maximum
/// magnitude of any slice. Returns the names of the pictures.
///
/// # Errors
/// A snapshot that is at fault; a picture that cannot be written.
pub fn draw(folder: &Path, snapshot: &Snapshot) -> Result<Vec<String>> {
    let Some(field) = Means::of(snapshot)? else { return Ok(Vec::new()) };
    let most = SLICES.iter().flat_map(|(_, axes)| field.slice(*axes)).map(|(_, mean)| mean.abs()).fold(1e-12, f64::max);
    let mut names = Vec::new();
    for (name, axes) in SLICES {
        names.extend(picture(&field, axes, most).save_both(folder, &format!("field_{name}"))?);
    }
    Ok(names)
}

/// The slice across X and Y at every snapshot of a run, for an animation.
pub struct Film<'s, S> {
    sink: &'s mut S,
    /// Ticks so far, and from one snapshot to the next.
    ticks: u64,
    snapshot_every: u64,
    /// One in this many snapshots becomes a frame.
    every: usize,
    seen: usize,
    cells: [usize; 3],
    frames: Vec<Vec<([usize; 2], f64)>>,
}

impl<'s, S: Sink> Film<'s, S> {
    /// A film that forwards everything to a sink.
    pub fn new(sink: &'s mut S, snapshot_every: u64) -> Self {
        Self { sink, ticks: 0, snapshot_every, every: 1, seen: 0, cells: [0; 3], frames: Vec::new() }
    }

    /// Writes `field.gif`, if there was a field in more than one snapshot; colours are scaled to the maximum magnitude of any frame.
    ///
    /// # Errors
    /// A picture that cannot be written.
    pub fn write(&self, path: &Path) -> Result<()> {
        if self.frames.len() < 2 {
            return Ok(());
        }
        file::write_with(path, |path| self.draw(path))
    }

    fn draw(&self, path: &Path) -> std::result::Result<(), String> {
        let fault = |error: &dyn std::fmt::Display| error.to_string();
        let (width, height) = (self.cells[0] as u32 * PIXELS, self.cells[1] as u32 * PIXELS);
        let most = self.frames.iter().flatten().map(|(_, mean)| mean.abs()).fold(1e-12, f64::max);
        let area = BitMapBackend::gif(path, (width, height), FRAME_MS).map_err(|error| fault(&error))?.into_drawing_area();
        for frame in &self.frames {
            for ([x, y], mean) in frame {
                let (left, bottom) = ((*x as u32 * PIXELS) as i32, height as i32 - (*y as u32 * PIXELS) as i32);
                let cell = Rectangle::new([(left, bottom - PIXELS as i32), (left + PIXELS as i32, bottom)], color(mean / most).filled());
                area.draw(&cell).map_err(|error| fault(&error))?;
            }
            area.present().map_err(|error| fault(&error))?;
        }
        Ok(())
    }
}

impl<S: Sink> Sink for Film<'_, S> {
    fn tick(&mut self, record: &TickRecord<'_>) -> Result<()> {
        self.ticks += 1;
        self.sink.tick(record)
    }

    fn snapshot(&mut self, snapshot: Snapshot) -> Result<()> {
        // Early snapshots, for a run that is killed soon, are more frequent than frames.
        if self.ticks.is_power_of_two() && self.ticks < self.snapshot_every {
            return self.sink.snapshot(snapshot);
        }
        if self.seen.is_multiple_of(self.every)
            && let Some(field) = Means::of(&snapshot)?
        {
            self.cells = field.cells;
            self.frames.push(field.slice([0, 1]).collect());
            if self.frames.len() > FRAMES {
                let mut place = 0;
                self.frames.retain(|_| {
                    place += 1;
                    place % 2 == 1
                });
                self.every *= 2;
            }
        }
        self.seen += 1;
        self.sink.snapshot(snapshot)
    }

    fn flush(&mut self) -> Result<()> {
        self.sink.flush()
    }
}

/// A slice through the middle of the third axis.
fn picture(field: &Means, axes: [usize; 2], most: f64) -> Chart {
    let [across, up] = axes;
    let axis = |axis: usize| Axis::new(AXES[axis], 0.0, field.cells[axis] as f64);
    let through = AXES[3 - across - up].chars().next().unwrap_or_default();
    let title = format!("Field at the end, slice at {through} = {}", field.cells[3 - across - up] / 2);
    // Square where the field is.
    let mut chart = Chart::sized((620, 540), &title, axis(across), axis(up));
    chart.scale("mean content", most, color);
    chart.axes();
    for ([x, y], mean) in field.slice(axes) {
        let corner = |x: usize, y: usize| (x as f64, y as f64);
        chart.cell(corner(x, y), corner(x + 1, y + 1), color(mean / most));
    }
    chart
}

/// From blue at −1 through white to red at 1.
fn color(share: f64) -> RGBColor {
    let pale = (255.0 * (1.0 - share.abs().min(1.0))).round() as u8;
    if share < 0.0 { RGBColor(pale, pale, 255) } else { RGBColor(255, pale, pale) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colors_go_from_blue_through_white_to_red() {
        let parts = [-2.0, -1.0, -0.5, 0.0, 1.0].map(|share| {
            let RGBColor(red, green, blue) = color(share);
            [red, green, blue]
        });
        assert_eq!(parts, [[0, 0, 255], [0, 0, 255], [128, 128, 255], [255, 255, 255], [255, 0, 0]]);
    }
}
