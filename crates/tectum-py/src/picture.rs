//! Pictures of schematics.

use tectum_control::body::schematic::{Role, Schematic, Shape};
use tiny_skia::{Color, FillRule, LineCap, Paint, PathBuilder, Pixmap, Rect, Stroke, Transform};

/// The longest side of a picture, in pixels.
pub const MAX_SIDE: u32 = 4096;

/// Red, green and blue.
fn color(role: Role) -> [u8; 3] {
    match role {
        Role::Fixed => [110, 118, 129],
        Role::Driven => [36, 61, 92],
        Role::Link => [201, 142, 83],
        Role::Joint => [112, 104, 184],
        Role::Goal => [46, 140, 82],
    }
}

/// A drawing on white, with its region in the middle, as large as fits: three bytes for each pixel,
/// row by row. None for a side of 0 or above [`MAX_SIDE`].
pub fn draw(schematic: &Schematic, width: u32, height: u32) -> Option<Vec<u8>> {
    if width > MAX_SIDE || height > MAX_SIDE {
        return None;
    }
    let mut picture = Pixmap::new(width, height)?;
    picture.fill(Color::WHITE);
    let (min, max) = (schematic.min, schematic.max);
    let size = [max[0] - min[0], max[1] - min[1]];
    let scale = (f64::from(width) / size[0]).min(f64::from(height) / size[1]);
    let middle = [min[0] + 0.5 * size[0], min[1] + 0.5 * size[1]];
    // Rows of pixels go down, metres up.
    let transform = Transform::from_row(
        scale as f32,
        0.0,
        0.0,
        -scale as f32,
        (0.5 * f64::from(width) - scale * middle[0]) as f32,
        (0.5 * f64::from(height) + scale * middle[1]) as f32,
    );
    for shape in &schematic.shapes {
        let mut paint = Paint::default();
        let mut set = |role| {
            let [red, green, blue] = color(role);
            paint.set_color_rgba8(red, green, blue, 255);
        };
        // What is not finite, or has no extent, is not drawn.
        match *shape {
            Shape::Line {
                role,
                from,
                to,
                width_m,
            } => {
                set(role);
                let mut path = PathBuilder::new();
                path.move_to(from[0] as f32, from[1] as f32);
                path.line_to(to[0] as f32, to[1] as f32);
                // A line of less than a pixel would be pale.
                let stroke = Stroke {
                    width: width_m.max(1.5 / scale) as f32,
                    line_cap: LineCap::Round,
                    ..Stroke::default()
                };
                if let Some(path) = path.finish() {
                    picture.stroke_path(&path, &paint, &stroke, transform, None);
                }
            }
            Shape::Disc {
                role,
                center,
                radius_m,
            } => {
                set(role);
                let [x, y] = center.map(|v| v as f32);
                if let Some(path) = PathBuilder::from_circle(x, y, radius_m as f32) {
                    picture.fill_path(&path, &paint, FillRule::Winding, transform, None);
                }
            }
            Shape::Rectangle {
                role,
                center,
                size_m,
            } => {
                set(role);
                let [x, y] = center.map(|v| v as f32);
                let [width, height] = size_m.map(|v| v as f32);
                let corner = [x - 0.5 * width, y - 0.5 * height];
                if let Some(rect) = Rect::from_xywh(corner[0], corner[1], width, height) {
                    picture.fill_rect(rect, &paint, transform, None);
                }
            }
        }
    }
    let pixels = picture.pixels().iter();
    Some(
        pixels
            .flat_map(|pixel| [pixel.red(), pixel.green(), pixel.blue()])
            .collect(),
    )
}
