//! Pictures of a field: slices through its middle, `field_xy`, `field_xz` and `field_yz`, and
//! `field.gif`, an animation of the first of them.

use std::path::Path;

use plotters::prelude::{BitMapBackend, IntoDrawingArea};
use plotters::style::RGBColor;
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
/// Pixels of an animation, fewer than of a picture, and the duration of a frame in milliseconds.
const FRAME_SIZE: (u32, u32) = (480, 420);
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
        let sizes: Vec<usize> = brain
            .u64("shape", 4)?
            .iter()
            .map(|size| *size as usize)
            .collect();
        let shape = Shape::new([sizes[0], sizes[1], sizes[2]], sizes[3])?;
        let field = brain.f32("field", shape.elements())?;
        let mean =
            |cell: &[f32]| cell[..shape.content()].iter().sum::<f32>() / shape.content() as f32;
        Ok(Some(Self {
            cells: shape.cells(),
            means: field.chunks_exact(shape.channels()).map(mean).collect(),
        }))
    }

    /// The slice through the middle.
    fn slice(&self, axes: [usize; 2]) -> Slice {
        let [across, up] = axes;
        let places =
            (0..self.cells[across]).flat_map(move |x| (0..self.cells[up]).map(move |y| [x, y]));
        let mean = |at: [usize; 2]| {
            let mut place = self.cells.map(|size| size / 2);
            (place[across], place[up]) = (at[0], at[1]);
            (
                at,
                f64::from(
                    self.means[(place[0] * self.cells[1] + place[1]) * self.cells[2] + place[2]],
                ),
            )
        };
        Slice {
            axes,
            cells: self.cells,
            means: places.map(mean).collect(),
        }
    }
}

/// The means of a slice through the middle of the third axis, by place along its axes.
struct Slice {
    axes: [usize; 2],
    cells: [usize; 3],
    means: Vec<([usize; 2], f64)>,
}

/// The maximum magnitude of slices, which their colours are scaled to.
fn largest(slices: &[Slice]) -> f64 {
    slices
        .iter()
        .flat_map(|slice| &slice.means)
        .map(|(_, mean)| mean.abs())
        .fold(1e-12, f64::max)
}

/// Draws the field at the end of a run, if its brain is one: the mean content of each cell, from
/// blue through white to red, scaled to the maximum magnitude of any slice. Returns the names of
/// the pictures.
///
/// # Errors
/// A snapshot that is at fault; a picture that cannot be written.
pub fn draw(folder: &Path, snapshot: &Snapshot) -> Result<Vec<String>> {
    let Some(field) = Means::of(snapshot)? else {
        return Ok(Vec::new());
    };
    let most = largest(&SLICES.map(|(_, axes)| field.slice(axes)));
    let mut names = Vec::new();
    for (name, axes) in SLICES {
        names.extend(
            picture((620, 540), "Field at the end", &field.slice(axes), most)
                .save_both(folder, &format!("field_{name}"))?,
        );
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
    /// The periods before each frame, and its slice.
    times: Vec<u64>,
    frames: Vec<Slice>,
}

impl<'s, S: Sink> Film<'s, S> {
    /// A film that forwards everything to a sink.
    pub fn new(sink: &'s mut S, snapshot_every: u64) -> Self {
        Self {
            sink,
            ticks: 0,
            snapshot_every,
            every: 1,
            seen: 0,
            times: Vec::new(),
            frames: Vec::new(),
        }
    }

    /// Writes `field.gif`, if there was a field in more than one snapshot; colours are scaled to
    /// the maximum magnitude of any frame.
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
        let most = largest(&self.frames);
        let area = BitMapBackend::gif(path, FRAME_SIZE, FRAME_MS)
            .map_err(|error| fault(&error))?
            .into_drawing_area();
        self.frames
            .iter()
            .zip(&self.times)
            .try_for_each(|(frame, ticks)| {
                picture(
                    FRAME_SIZE,
                    &format!("Field after {ticks} periods"),
                    frame,
                    most,
                )
                .draw_bitmap(&area)
            })
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
            self.frames.push(field.slice([0, 1]));
            self.times.push(self.ticks);
            if self.frames.len() > FRAMES {
                keep_every_second(&mut self.frames);
                keep_every_second(&mut self.times);
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

fn keep_every_second<T>(values: &mut Vec<T>) {
    let mut place = 0;
    values.retain(|_| {
        place += 1;
        place % 2 == 1
    });
}

/// A slice with its scale of colours; a size a little wider than high makes cells square.
fn picture(size: (u32, u32), what: &str, slice: &Slice, most: f64) -> Chart {
    let Slice {
        axes: [across, up],
        cells,
        means,
    } = slice;
    let axis = |axis: usize| Axis::new(AXES[axis], 0.0, cells[axis] as f64);
    let third = 3 - across - up;
    let through = AXES[third].chars().next().unwrap_or_default();
    let mut chart = Chart::sized(
        size,
        &format!("{what}, slice {through} = {}", cells[third] / 2),
        axis(*across),
        axis(*up),
    );
    chart.scale("mean of a cell's channels", most, color);
    chart.axes();
    for ([x, y], mean) in means {
        let corner = |x: usize, y: usize| (x as f64, y as f64);
        chart.cell(corner(*x, *y), corner(x + 1, y + 1), color(mean / most));
    }
    chart
}

/// From blue at −1 through white to red at 1.
fn color(share: f64) -> RGBColor {
    let pale = (255.0 * (1.0 - share.abs().min(1.0))).round() as u8;
    if share < 0.0 {
        RGBColor(pale, pale, 255)
    } else {
        RGBColor(255, pale, pale)
    }
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
        assert_eq!(
            parts,
            [
                [0, 0, 255],
                [0, 0, 255],
                [128, 128, 255],
                [255, 255, 255],
                [255, 0, 0]
            ]
        );
    }
}
