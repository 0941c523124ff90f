//! Pictures of a field: slices through its middle, `field_xy.png`, `field_xz.png` and `field_yz.png`.

use std::path::Path;

use plotters::style::RGBColor;
use tectum::{Error, Result};
use tectum_models::field::Shape;
use tectum_models::snapshot::Snapshot;

use super::chart::{Axis, Chart};

/// The slices: name, and the axes across and up.
const SLICES: [(&str, [usize; 2]); 3] = [("xy", [0, 1]), ("xz", [0, 2]), ("yz", [1, 2])];
const AXES: [&str; 3] = ["X", "Y", "Z"];

/// Draws the field that a run ended with, if its brain is one: the mean content of each cell, from blue through white to red, the greatest size of any
/// slice the full colour.
///
/// # Errors
/// A snapshot that is at fault; a picture that cannot be written.
pub fn draw(folder: &Path, snapshot: &Snapshot) -> Result<()> {
    let brain = snapshot.part("brain");
    if brain.len_of("field").is_none() {
        return Ok(());
    }
    let told: Vec<usize> = brain.u64("shape", 4)?.iter().map(|size| *size as usize).collect();
    let shape = Shape::new([told[0], told[1], told[2]], told[3])?;
    let field = brain.f32("field", shape.elements())?;
    let cells = shape.cells();
    let content = |place: [usize; 3]| {
        let cell = (place[0] * cells[1] + place[1]) * cells[2] + place[2];
        field[cell * shape.channels()..][..shape.content()].iter().map(|v| f64::from(*v)).sum::<f64>() / shape.content() as f64
    };
    let slice = |[across, up]: [usize; 2]| {
        let places = (0..cells[across]).flat_map(move |x| (0..cells[up]).map(move |y| [x, y]));
        places.map(move |at| {
            let mut place = cells.map(|size| size / 2);
            (place[across], place[up]) = (at[0], at[1]);
            (at, content(place))
        })
    };
    let most = SLICES.iter().flat_map(|(_, axes)| slice(*axes)).map(|(_, mean)| mean.abs()).fold(1e-12, f64::max);
    for (name, axes) in SLICES {
        let written = picture(&folder.join(format!("field_{name}.png")), axes, cells, slice(axes).map(|(at, mean)| (at, mean / most)));
        written.map_err(|message| Error::data(message).at(folder.display()))?;
    }
    Ok(())
}

fn picture(path: &Path, [across, up]: [usize; 2], cells: [usize; 3], means: impl Iterator<Item = ([usize; 2], f64)>) -> std::result::Result<(), String> {
    let axis = |axis: usize| Axis::new(AXES[axis], 0.0, cells[axis] as f64);
    let mut chart = Chart::new(path, axis(across), axis(up))?;
    chart.axes()?;
    for ([x, y], share) in means {
        let corner = |x: usize, y: usize| (x as f64, y as f64);
        chart.cells(std::iter::once((corner(x, y), corner(x + 1, y + 1))), color(share))?;
    }
    chart.finish()
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
