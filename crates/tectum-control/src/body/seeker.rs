//! A light seeker: a disc that drives in a walled square among obstacles, with two eyes, three
//! whiskers and a reward.

mod lanes;

use std::f64::consts::{FRAC_PI_4, PI};

use tectum::{Error, Result};

use super::batch::{BatchKernel, StepBodies, StepKernel, with_body};
use super::parameters::{BodyParameters, Parameter};
use super::schematic::{Role, Schematic};
use super::settings::{PlantSettings, read_settings};
use super::task::zero_angle;
use super::uniform::Uniform;
use super::{
    ActionChannel, Body, BodySpec, Descriptor, ExactState, ObservationChannel, RandomizeState,
    Start, Step, check_state, wrapped_rad,
};
use crate::document::Section;
use crate::kernel::built_in;

/// What is known of the body by its name.
pub static DESCRIPTOR: Descriptor = Descriptor {
    batch: Some(BatchKernel {
        numbers: NUMBERS,
        has_starts: false,
        angles: &[2],
        define: |name| {
            StepKernel::new(
                built_in(
                    with_body(
                        StepBodies::define(format!("body_{name}")),
                        &[include_str!("../../kernels/body_seeker.wgsl")],
                    ),
                    lanes::step,
                ),
                |step| step,
            )
        },
    }),
    settings: Some(read_settings::<BodyParameters<SeekerParameters>>),
    ..Descriptor::new(
        "seeker",
        &[Start::Random],
        |start| Ok(Box::new(Seeker::new(start)?)),
        || zero_angle(bearing_in, "angle from the heading to the light", "aligned"),
    )
};

const OBSTACLES: usize = 4;
const LIGHTS: usize = 8;
/// Directions of the whiskers from straight ahead, to the left.
const WHISKERS_RAD: [f64; 3] = [FRAC_PI_4, 0.0, -FRAC_PI_4];
const BUMP_PENALTY: f64 = 0.5;
const NUMBERS: usize = 6 + 2 * LIGHTS + 2 * OBSTACLES;

/// Constants of the seeker.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SeekerParameters {
    /// Time between two actions, seconds. Default: 0.1.
    pub dt_s: f64,
    /// Side of the square, metres. Default: 4.
    pub side_m: f64,
    /// Highest speed, metres per second. Default: 0.5.
    pub max_speed_m_per_s: f64,
    /// Highest turn rate to either side, radians per second. Default: 2.
    pub max_turn_rad_per_s: f64,
    /// Radius of the disc, metres. Default: 0.1.
    pub radius_m: f64,
    /// Radius of an obstacle, metres. Default: 0.25.
    pub obstacle_radius_m: f64,
    /// Reach of a whisker from the centre, metres. Default: 0.6.
    pub whisker_m: f64,
    /// A light closer than this, in metres, is found, and the next one is lit. Default: 0.3.
    pub found_m: f64,
}

impl Default for SeekerParameters {
    fn default() -> Self {
        Self {
            dt_s: 0.1,
            side_m: 4.0,
            max_speed_m_per_s: 0.5,
            max_turn_rad_per_s: 2.0,
            radius_m: 0.1,
            obstacle_radius_m: 0.25,
            whisker_m: 0.6,
            found_m: 0.3,
        }
    }
}

/// The largest part of a room that its obstacles may block: places for the disc and the lights are
/// drawn until one is free, which takes some fifteen draws then.
const MAX_BLOCKED: f64 = 0.9;

impl SeekerParameters {
    /// Refuses rooms that the obstacles could block.
    fn check(&self) -> Result<()> {
        let reach_m = self.obstacle_radius_m + self.radius_m;
        let side_m = self.side_m - 2.0 * self.found_m.max(self.radius_m);
        let blocked_m2 = OBSTACLES as f64 * PI * reach_m.powi(2);
        if blocked_m2 <= MAX_BLOCKED * side_m.powi(2) {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "seeker: {OBSTACLES} obstacles keep a disc out of up to {blocked_m2:.2} m² (obstacle_radius_m {}, radius_m {}), and places are drawn from {:.2} m² (side_m {}, found_m {}); at most {:.0} % may be blocked",
            self.obstacle_radius_m,
            self.radius_m,
            side_m.powi(2),
            self.side_m,
            self.found_m,
            100.0 * MAX_BLOCKED
        )))
    }
}

/// Its parameters in scenarios.
const PARAMETERS: [Parameter<SeekerParameters>; 8] = [
    Parameter {
        name: "action_period_s",
        unit: "s",
        about: "time between two actions",
        range: [0.01, 1.0],
        get: |seeker| seeker.dt_s,
        set: |seeker, value| seeker.dt_s = value,
    },
    Parameter {
        name: "side_m",
        unit: "m",
        about: "side of the square room",
        range: [3.0, 100.0],
        get: |seeker| seeker.side_m,
        set: |seeker, value| seeker.side_m = value,
    },
    Parameter {
        name: "max_speed",
        unit: "m/s",
        about: "highest speed",
        range: [0.01, 10.0],
        get: |seeker| seeker.max_speed_m_per_s,
        set: |seeker, value| seeker.max_speed_m_per_s = value,
    },
    Parameter {
        name: "max_turn",
        unit: "rad/s",
        about: "highest turn rate to either side",
        range: [0.01, 20.0],
        get: |seeker| seeker.max_turn_rad_per_s,
        set: |seeker, value| seeker.max_turn_rad_per_s = value,
    },
    Parameter {
        name: "radius_m",
        unit: "m",
        about: "radius of the disc",
        range: [0.01, 0.3],
        get: |seeker| seeker.radius_m,
        set: |seeker, value| seeker.radius_m = value,
    },
    Parameter {
        name: "obstacle_radius_m",
        unit: "m",
        about: "radius of each of the four obstacles",
        range: [0.01, 0.4],
        get: |seeker| seeker.obstacle_radius_m,
        set: |seeker, value| seeker.obstacle_radius_m = value,
    },
    Parameter {
        name: "whisker_m",
        unit: "m",
        about: "reach of a whisker from the centre",
        range: [0.05, 10.0],
        get: |seeker| seeker.whisker_m,
        set: |seeker, value| seeker.whisker_m = value,
    },
    Parameter {
        name: "found_m",
        unit: "m",
        about: "a light closer than this is found, and the next one is lit",
        range: [0.05, 1.0],
        get: |seeker| seeker.found_m,
        set: |seeker, value| seeker.found_m = value,
    },
];

impl PlantSettings for BodyParameters<SeekerParameters> {
    fn read(section: &mut Section<'_, '_>) -> Result<Self> {
        Self::read(
            section,
            "Parameters of the rig or the seeker, which controllers know; its own if absent.",
            &PARAMETERS,
        )
    }

    fn make(&self, start: Start) -> Result<Box<dyn Body>> {
        Ok(Box::new(Seeker::with(self.values, start)?))
    }

    fn changes_batches(&self) -> bool {
        !self.changed.is_empty()
    }
}

/// The light seeker.
///
/// A disc of radius 0.1 m at (x, y) with heading θ in a square of 4 m with four round obstacles of
/// 0.25 m. With the speed v and the turn rate τ of an action: θ' = wrap(θ + τ dt); (x', y') = (x,
/// y) + v dt (cos θ', sin θ'), or (x, y) if the disc would touch a wall or an obstacle there: it
/// bumps. One light is on at a time, at distance d and bearing b from the heading, positive to the
/// left; when d' < 0.3 m the next of eight is lit, in turn.
///
/// Observed: left and right eye max(0, cos(b ∓ π/4))/(1 + d²); three whiskers at 45° left, ahead
/// and 45° right, 1 − (distance to the first wall or obstacle)/0.6 m, at least 0; 1 after a bump;
/// the reward of the previous step, which a brain may use as such. Obstacles do not hide lights.
///
/// The reward is (d − d')/(0.5 m/s dt) with d' to the light that was on, less 0.5 after a bump,
/// clamped to ±1. It never terminates. Its task is to face the light: to keep b at 0. State: x, y
/// (m), θ (rad), lights found, bumped (0 or 1), reward, the lights' places (x, y of each), the
/// obstacles'.
///
/// # Source
/// Two eyes and two wheels as in V. Braitenberg, "Vehicles", MIT Press 1984; all numbers are this
/// body's own.
pub struct Seeker {
    spec: BodySpec,
    parameters: SeekerParameters,
    place: [f64; 2],
    heading_rad: f64,
    found: u64,
    bumped: bool,
    reward: f64,
    lights: [[f64; 2]; LIGHTS],
    obstacles: [[f64; 2]; OBSTACLES],
}

impl Seeker {
    /// Makes the body, at its start for seed 0.
    ///
    /// # Errors
    /// A start other than random: this body cannot hang.
    pub fn new(start: Start) -> Result<Self> {
        Self::with(SeekerParameters::default(), start)
    }

    /// Makes one of other parameters, at its start for seed 0.
    ///
    /// # Errors
    /// As [`Seeker::new`]; parameters of which the obstacles could leave no place for the disc.
    fn with(parameters: SeekerParameters, start: Start) -> Result<Self> {
        parameters.check()?;
        if start != Start::Random {
            return Err(Error::invalid(
                "seeker: it has no start \"hanging\"; known: random",
            ));
        }
        let lights = [[0.0; 2]; LIGHTS];
        let (spec, obstacles) = (spec(&parameters), [[0.0; 2]; OBSTACLES]);
        let mut seeker = Self {
            spec,
            parameters,
            place: [0.0; 2],
            heading_rad: 0.0,
            found: 0,
            bumped: false,
            reward: 0.0,
            lights,
            obstacles,
        };
        seeker.reset(0);
        Ok(seeker)
    }

    /// Lights found since the start.
    pub fn found(&self) -> u64 {
        self.found
    }

    fn light(&self) -> [f64; 2] {
        self.lights[light_index(self.found)]
    }

    fn distance_m(&self) -> f64 {
        distance(self.place, self.light())
    }

    fn is_blocked(&self, place: [f64; 2]) -> bool {
        let SeekerParameters {
            radius_m,
            obstacle_radius_m,
            side_m,
            ..
        } = self.parameters;
        let is_outside = place
            .iter()
            .any(|v| !(radius_m..=side_m - radius_m).contains(v));
        is_outside
            || self
                .obstacles
                .iter()
                .any(|obstacle| distance(place, *obstacle) < obstacle_radius_m + radius_m)
    }

    /// The distance to the first wall or obstacle in a direction, in metres.
    fn obstacle_distance_m(&self, direction_rad: f64) -> f64 {
        let SeekerParameters {
            obstacle_radius_m,
            side_m,
            ..
        } = self.parameters;
        let (sin, cos) = direction_rad.sin_cos();
        let to_wall = self
            .place
            .into_iter()
            .zip([cos, sin])
            .map(|(v, step)| match step {
                step if step > 1e-12 => (side_m - v) / step,
                step if step < -1e-12 => -v / step,
                _ => f64::INFINITY,
            });
        let to_obstacle = self.obstacles.iter().filter_map(|obstacle| {
            let [dx, dy] = [obstacle[0] - self.place[0], obstacle[1] - self.place[1]];
            let (along, across) = (dx * cos + dy * sin, dy * cos - dx * sin);
            (along > 0.0 && across.abs() < obstacle_radius_m)
                .then(|| along - (obstacle_radius_m.powi(2) - across.powi(2)).sqrt())
        });
        to_wall.chain(to_obstacle).fold(f64::INFINITY, f64::min)
    }

    /// Draws a position that is not blocked, of which [`SeekerParameters::check`] leaves enough.
    fn draw_free_position(&self, uniform: &mut Uniform) -> [f64; 2] {
        let SeekerParameters {
            found_m, side_m, ..
        } = self.parameters;
        loop {
            let place = [0, 1].map(|_| uniform.between(found_m, side_m - found_m));
            if !self.is_blocked(place) {
                return place;
            }
        }
    }
}

/// Which light is on.
fn light_index(found: u64) -> usize {
    (found % LIGHTS as u64) as usize
}

/// The bearing of the light that is on in a state.
fn bearing_in(state: &[f64]) -> f64 {
    let light = 6 + 2 * light_index(state[3] as u64);
    bearing_rad(
        [state[0], state[1]],
        state[2],
        [state[light], state[light + 1]],
    )
}

/// The bearing of a light from the heading, positive to the left.
fn bearing_rad(place: [f64; 2], heading_rad: f64, light: [f64; 2]) -> f64 {
    wrapped_rad((light[1] - place[1]).atan2(light[0] - place[0]) - heading_rad)
}

fn distance(a: [f64; 2], b: [f64; 2]) -> f64 {
    (a[0] - b[0]).hypot(a[1] - b[1])
}

fn spec(parameters: &SeekerParameters) -> BodySpec {
    let [speed, turn] =
        [parameters.max_speed_m_per_s, parameters.max_turn_rad_per_s].map(|limit| limit as f32);
    let channel = |name, low| ObservationChannel::new(name, "", low..=1.0);
    let names = [
        "light_left",
        "light_right",
        "whisker_left",
        "whisker_ahead",
        "whisker_right",
        "bump",
    ];
    BodySpec {
        name: DESCRIPTOR.name.into(),
        dt_s: parameters.dt_s,
        observation: names
            .into_iter()
            .map(|name| channel(name, 0.0))
            .chain([channel("reward", -1.0)])
            .collect(),
        action: vec![
            ActionChannel::new("speed", "m/s", 0.0..=speed),
            ActionChannel::new("turn", "rad/s", -turn..=turn),
        ],
        safe_action: vec![0.0; 2],
    }
}

impl Body for Seeker {
    capabilities!(ExactState, RandomizeState);

    fn spec(&self) -> &BodySpec {
        &self.spec
    }

    fn reset(&mut self, seed: u64) {
        let mut uniform = Uniform::new(seed);
        self.obstacles = [(); OBSTACLES]
            .map(|()| [0, 1].map(|_| uniform.between(0.8, self.parameters.side_m - 0.8)));
        self.lights = [(); LIGHTS].map(|()| self.draw_free_position(&mut uniform));
        self.place = self.draw_free_position(&mut uniform);
        self.heading_rad = uniform.within(PI);
        (self.found, self.bumped, self.reward) = (0, false, 0.0);
    }

    fn observe(&self, observation: &mut [f32]) {
        let bearing_rad = bearing_rad(self.place, self.heading_rad, self.light());
        let eye = |side: f64| {
            ((bearing_rad - side * FRAC_PI_4).cos().max(0.0) / (1.0 + self.distance_m().powi(2)))
                as f32
        };
        let whisker = |direction: f64| {
            (1.0 - self.obstacle_distance_m(self.heading_rad + direction)
                / self.parameters.whisker_m)
                .max(0.0) as f32
        };
        let [left, ahead, right] = WHISKERS_RAD.map(whisker);
        observation.copy_from_slice(&[
            eye(1.0),
            eye(-1.0),
            left,
            ahead,
            right,
            f32::from(u8::from(self.bumped)),
            self.reward as f32,
        ]);
    }

    fn step(&mut self, action: &[f32]) -> Step {
        assert_eq!(action.len(), 2, "seeker: an action has 2 numbers");
        let applied: Vec<Option<f32>> = self
            .spec
            .action
            .iter()
            .zip(action)
            .map(|(channel, value)| channel.applied(*value))
            .collect();
        let refused = applied.iter().any(Option::is_none);
        let [speed, turn] = [0, 1].map(|i| {
            f64::from(if refused {
                self.spec.safe_action[i]
            } else {
                applied[i].unwrap_or(0.0)
            })
        });
        let SeekerParameters {
            dt_s,
            max_speed_m_per_s,
            found_m,
            ..
        } = self.parameters;
        let before_m = self.distance_m();
        self.heading_rad = wrapped_rad(self.heading_rad + turn * dt_s);
        let (sin, cos) = self.heading_rad.sin_cos();
        let ahead = [
            self.place[0] + speed * dt_s * cos,
            self.place[1] + speed * dt_s * sin,
        ];
        self.bumped = self.is_blocked(ahead);
        if !self.bumped {
            self.place = ahead;
        }
        let nearer = (before_m - self.distance_m()) / (max_speed_m_per_s * dt_s);
        self.reward = (nearer - if self.bumped { BUMP_PENALTY } else { 0.0 }).clamp(-1.0, 1.0);
        self.found += u64::from(self.distance_m() < found_m);
        Step {
            reward: self.reward,
            refused,
            ..Step::default()
        }
    }

    /// From above: walls, obstacles, the light that is on, whiskers up to what they touch.
    fn schematic(&self) -> Schematic {
        let SeekerParameters {
            side_m,
            radius_m,
            obstacle_radius_m,
            whisker_m,
            ..
        } = self.parameters;
        let ahead = |direction: f64, length_m: f64| {
            let (sin, cos) = (self.heading_rad + direction).sin_cos();
            [
                self.place[0] + length_m * cos,
                self.place[1] + length_m * sin,
            ]
        };
        let margin_m = 0.05 * side_m;
        let corners = [[0.0, 0.0], [side_m, 0.0], [side_m, side_m], [0.0, side_m]];
        let mut drawing = Schematic::new([-margin_m; 2], [side_m + margin_m; 2]).disc(
            Role::Goal,
            self.light(),
            0.03 * side_m,
        );
        for (index, corner) in corners.iter().enumerate() {
            drawing = drawing.line(
                Role::Fixed,
                *corner,
                corners[(index + 1) % 4],
                0.01 * side_m,
            );
        }
        for obstacle in self.obstacles {
            drawing = drawing.disc(Role::Fixed, obstacle, obstacle_radius_m);
        }
        for direction in WHISKERS_RAD {
            let length_m = whisker_m.min(self.obstacle_distance_m(self.heading_rad + direction));
            drawing = drawing.line(
                Role::Joint,
                self.place,
                ahead(direction, length_m),
                0.005 * side_m,
            );
        }
        drawing.disc(Role::Driven, self.place, radius_m).line(
            Role::Link,
            self.place,
            ahead(0.0, radius_m),
            0.3 * radius_m,
        )
    }
}

impl ExactState for Seeker {
    fn append_state(&self, state: &mut Vec<f64>) {
        state.extend(self.place);
        state.extend([
            self.heading_rad,
            self.found as f64,
            f64::from(u8::from(self.bumped)),
            self.reward,
        ]);
        state.extend(self.lights.as_flattened());
        state.extend(self.obstacles.as_flattened());
    }

    fn set_state(&mut self, state: &[f64]) -> Result<()> {
        let [x, y, heading, found, bumped, reward, places @ ..] =
            check_state::<NUMBERS>(DESCRIPTOR.name, state)?;
        if !(found >= 0.0 && found.fract() == 0.0) {
            return Err(Error::invalid(format!(
                "seeker: state number 3 is {found}; lights found are a whole number"
            )));
        }
        let place = |index: usize| [places[2 * index], places[2 * index + 1]];
        (self.place, self.heading_rad, self.found) = ([x, y], heading, found as u64);
        (self.bumped, self.reward) = (bumped != 0.0, reward);
        self.lights = std::array::from_fn(place);
        self.obstacles = std::array::from_fn(|index| place(LIGHTS + index));
        Ok(())
    }
}

impl RandomizeState for Seeker {
    /// Same as a reset: starts are anywhere already.
    fn randomize_state(&mut self, seed: u64) {
        self.reset(seed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// At (1, 2), heading along X, the light at (2, 2) and no obstacle near.
    fn made() -> Seeker {
        let mut seeker = Seeker::new(Start::Random).expect("its start");
        let mut state = vec![0.0; NUMBERS];
        (state[0], state[1]) = (1.0, 2.0);
        state[6..6 + 2 * LIGHTS].fill(2.0);
        state[6 + 2 * LIGHTS..].fill(3.0);
        seeker.set_state(&state).expect("a state of its own");
        seeker
    }

    fn observed(seeker: &Seeker) -> [f32; 7] {
        let mut observation = [0.0; 7];
        seeker.observe(&mut observation);
        observation
    }

    #[test]
    fn eyes_whiskers_and_reward_are_those_of_the_equations() {
        let mut seeker = made();
        // cos 45° over 1 + 1 in both eyes.
        let [left, right, ..] = observed(&seeker);
        assert!(
            (left - 0.353_553).abs() < 1e-5 && (right - left).abs() < 1e-6,
            "{left} {right}"
        );
        // Straight ahead at full speed: 0.05 m nearer, the maximum.
        assert!((seeker.step(&[0.5, 0.0]).reward - 1.0).abs() < 1e-9);
        // Turned by 45° to the right, the light is ahead of the left eye and at 90° to the right
        // one.
        seeker.heading_rad = -FRAC_PI_4;
        let [left, right, ..] = observed(&seeker);
        assert!(
            (f64::from(left) - 1.0 / (1.0 + 0.95f64.powi(2))).abs() < 1e-6 && right.abs() < 1e-6,
            "{left} {right}"
        );
        // 0.3 m from the wall ahead: half of the whisker, and of the others 1 − 0.3·√2/0.6.
        (seeker.place, seeker.heading_rad) = ([3.7, 2.0], 0.0);
        let [_, _, left, ahead, right, ..] = observed(&seeker);
        assert!(
            (ahead - 0.5).abs() < 1e-6
                && (left - 0.292_893).abs() < 1e-5
                && (right - left).abs() < 1e-6,
            "{left} {ahead} {right}"
        );
        // An obstacle of radius 0.25 m at 0.5 m: 0.25 m are free.
        seeker.place = [1.0, 1.0];
        seeker.obstacles[0] = [1.5, 1.0];
        assert!((seeker.obstacle_distance_m(0.0) - 0.25).abs() < 1e-12);
        assert!(seeker.obstacle_distance_m(PI) > 0.99);
    }

    #[test]
    fn walls_and_obstacles_stop_it_and_lights_follow_each_other() {
        let mut seeker = made();
        (seeker.place, seeker.heading_rad) = ([3.88, 2.0], 0.0);
        let before = seeker.place;
        let step = seeker.step(&[0.5, 0.0]);
        assert_eq!(
            (seeker.place, step.reward, observed(&seeker)[5]),
            (before, -0.5, 1.0)
        );
        seeker.place = [1.66, 2.0];
        assert_eq!(seeker.found(), 0);
        seeker.step(&[0.5, 0.0]);
        assert_eq!(seeker.found(), 1);
        assert!(
            seeker
                .set_state(&[0.5; NUMBERS])
                .expect_err("half a light")
                .to_string()
                .contains("whole number")
        );
    }

    /// Obstacles that can cover every place are refused: the disc would have none.
    #[test]
    fn a_room_that_its_obstacles_could_block_is_refused() {
        let narrow = SeekerParameters {
            side_m: 3.0,
            obstacle_radius_m: 0.4,
            radius_m: 0.3,
            found_m: 1.0,
            ..SeekerParameters::default()
        };
        let error = Seeker::with(narrow, Start::Random).err().expect("refused");
        let error = error.to_string();
        assert!(
            error.starts_with("seeker: 4 obstacles keep a disc out of up to 6.16 m²")
                && error.contains("places are drawn from 1.00 m² (side_m 3, found_m 1)"),
            "{error}"
        );
        // At the limit, every seed has places.
        let full = SeekerParameters {
            side_m: 3.0,
            obstacle_radius_m: 0.34,
            radius_m: 0.3,
            ..SeekerParameters::default()
        };
        let mut seeker = Seeker::with(full, Start::Random).expect("5.15 of 5.76 m²");
        for seed in 0..1000 {
            seeker.reset(seed);
            assert!(!seeker.is_blocked(seeker.place), "{seed}");
        }
    }
}
