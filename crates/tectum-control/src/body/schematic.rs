//! Schematics of bodies: a few shapes in metres, for pictures and live pages.

use serde::Serialize;

use super::BodySpec;

/// A point in metres; the first number is to the right, the second upwards.
pub type Point = [f64; 2];

/// What a shape represents, which decides its colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// What does not move: a track, a wall, an obstacle.
    Fixed,
    /// What an action moves: a cart, a vehicle.
    Driven,
    /// A link that swings.
    Link,
    /// A joint or a sensor.
    Joint,
    /// What is to be reached.
    Goal,
}

/// A filled shape.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "shape", rename_all = "snake_case")]
pub enum Shape {
    /// A line with round ends.
    Line {
        /// What it represents.
        role: Role,
        /// One end.
        from: Point,
        /// The other end.
        to: Point,
        /// Its width.
        width_m: f64,
    },
    /// A disc.
    Disc {
        /// What it represents.
        role: Role,
        /// Its centre.
        center: Point,
        /// Its radius.
        radius_m: f64,
    },
    /// An upright rectangle.
    Rectangle {
        /// What it represents.
        role: Role,
        /// Its centre.
        center: Point,
        /// Width and height.
        size_m: [f64; 2],
    },
}

/// A drawing of a body in one state: what is drawn later covers what is drawn before.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Schematic {
    /// The lower left corner of what should be visible.
    pub min: Point,
    /// The upper right corner.
    pub max: Point,
    /// The shapes, from back to front.
    pub shapes: Vec<Shape>,
}

impl Schematic {
    /// An empty drawing of a region.
    pub fn new(min: Point, max: Point) -> Self {
        Self {
            min,
            max,
            shapes: Vec::new(),
        }
    }

    /// With a line.
    #[must_use]
    pub fn line(mut self, role: Role, from: Point, to: Point, width_m: f64) -> Self {
        self.shapes.push(Shape::Line {
            role,
            from,
            to,
            width_m,
        });
        self
    }

    /// With a disc.
    #[must_use]
    pub fn disc(mut self, role: Role, center: Point, radius_m: f64) -> Self {
        self.shapes.push(Shape::Disc {
            role,
            center,
            radius_m,
        });
        self
    }

    /// With a rectangle.
    #[must_use]
    pub fn rectangle(mut self, role: Role, center: Point, size_m: [f64; 2]) -> Self {
        self.shapes.push(Shape::Rectangle {
            role,
            center,
            size_m,
        });
        self
    }

    /// Gauges, for a body of unknown geometry: a track for each channel of one number, the first at the top, with
    /// a disc at its value in the range of the channel.
    pub fn gauges(spec: &BodySpec, observation: &[f32]) -> Self {
        let channels = spec.observation.iter().zip(spec.ranges());
        let channels = channels.filter(|(channel, _)| !channel.is_array());
        let rows = channels.clone().count();
        let empty = Self::new([-1.2, -0.5], [1.2, rows.max(1) as f64 - 0.5]);
        channels
            .enumerate()
            .fold(empty, |drawing, (row, (channel, range))| {
                let value = observation[range.start];
                let height = (rows - 1 - row) as f64;
                let share = (value - channel.low) / (channel.high - channel.low);
                // A range of one value, or a value that is not finite, is in the middle.
                let share = if share.is_finite() { share } else { 0.5 };
                let place = 2.0 * f64::from(share.clamp(-0.05, 1.05)) - 1.0;
                drawing
                    .line(Role::Fixed, [-1.0, height], [1.0, height], 0.05)
                    .disc(Role::Driven, [place, height], 0.12)
            })
    }

    /// A cart on a track from −`travel_m` to `travel_m`, at `position_m`, with a pole that leans to
    /// the right by `angle_rad` from upright.
    pub(super) fn cart_and_pole(
        travel_m: f64,
        position_m: f64,
        angle_rad: f64,
        pole_m: f64,
    ) -> Self {
        let (sin, cos) = angle_rad.sin_cos();
        let tip = [position_m + pole_m * sin, pole_m * cos];
        let width = travel_m + pole_m;
        let height = 1.3 * pole_m;
        Self::new([-width, -height], [width, height])
            .line(
                Role::Fixed,
                [-travel_m, 0.0],
                [travel_m, 0.0],
                0.03 * pole_m,
            )
            .rectangle(
                Role::Driven,
                [position_m, 0.0],
                [0.45 * pole_m, 0.25 * pole_m],
            )
            .line(Role::Link, [position_m, 0.0], tip, 0.08 * pole_m)
            .disc(Role::Joint, [position_m, 0.0], 0.05 * pole_m)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::body::{BODIES, ObservationChannel};

    fn tips(drawing: &Schematic) -> Vec<Point> {
        let lines = drawing.shapes.iter().filter_map(|shape| match shape {
            Shape::Line {
                role: Role::Link,
                to,
                ..
            } => Some(*to),
            _ => None,
        });
        lines.collect()
    }

    fn drawn(name: &str, state: &[f64]) -> Schematic {
        let descriptor = BODIES.into_iter().find(|body| body.name == name);
        let descriptor = descriptor.expect("known");
        let mut body = (descriptor.make)(descriptor.starts[0]).expect("its start");
        body.set_state(state).expect("a state");
        body.schematic()
    }

    #[test]
    fn poles_point_where_their_angles_say() {
        let near = |found: Point, expected: Point| {
            let differences = found.iter().zip(expected);
            assert!(
                differences.clone().all(|(a, b)| (a - b).abs() < 1e-12),
                "{found:?}, not {expected:?}"
            );
        };
        let quarter = std::f64::consts::FRAC_PI_2;
        // A cart at 1 m whose pole of 1 m lies to the right.
        near(
            tips(&drawn("cart_pole", &[1.0, 0.0, quarter, 0.0, 0.0]))[0],
            [2.0, 0.0],
        );
        near(tips(&drawn("pendulum", &[0.0, 0.0]))[0], [0.0, 1.0]);
        // The angle of Gymnasium's pendulum grows to the left.
        near(tips(&drawn("pendulum", &[quarter, 0.0]))[0], [-1.0, 0.0]);
        // From hanging to the right, then upwards.
        let links = tips(&drawn("acrobot", &[quarter, quarter, 0.0, 0.0]));
        near(links[0], [1.0, 0.0]);
        near(links[1], [1.0, 1.0]);
        near(
            tips(&drawn("rig", &[0.05, 0.0, quarter, 0.0, 0.0, 0.0]))[0],
            [0.05 + 0.17, 0.0],
        );
    }

    #[test]
    fn every_body_is_within_its_drawing_at_its_start() {
        for descriptor in BODIES {
            for start in descriptor.starts {
                let mut body = (descriptor.make)(*start).expect("its start");
                body.reset(3);
                let drawing = body.schematic();
                assert!(drawing.shapes.len() > 2, "{}", descriptor.name);
                for shape in &drawing.shapes {
                    let points = match shape {
                        Shape::Line { from, to, .. } => vec![*from, *to],
                        Shape::Disc { center, .. } | Shape::Rectangle { center, .. } => {
                            vec![*center]
                        }
                    };
                    let is_inside = points.iter().flatten().enumerate().all(|(index, value)| {
                        (drawing.min[index % 2]..=drawing.max[index % 2]).contains(value)
                    });
                    assert!(is_inside, "{}: {shape:?}", descriptor.name);
                }
            }
        }
    }

    #[test]
    fn gauges_show_values_in_their_ranges() {
        let mut spec = (BODIES[0].make)(BODIES[0].starts[0])
            .expect("its start")
            .spec()
            .clone();
        spec.observation = vec![
            ObservationChannel::new("a", "", 0.0..=4.0),
            ObservationChannel::new("b", "", 1.0..=1.0),
            ObservationChannel::new("c", "", -1.0..=1.0),
        ];
        let drawing = Schematic::gauges(&spec, &[1.0, 7.0, f32::NAN]);
        let places = drawing.shapes.iter().filter_map(|shape| match shape {
            Shape::Disc { center, .. } => Some(*center),
            _ => None,
        });
        let places: Vec<Point> = places.collect();
        assert_eq!(places[0], [-0.5, 2.0]);
        assert!(places.iter().flatten().all(|value| value.is_finite()));
        assert_eq!(places[2], [0.0, 0.0]);
    }
}
