//! Tasks: what a run on a body is judged by.
//!
//! A body moves and a task measures it: the same body may have several tasks, and a task may be run
//! on several bodies.

use std::borrow::Cow;
use std::f64::consts::PI;

use super::{Body, Step};

/// An angle counts as upright, and a heading as right, within 10 degrees.
pub const UPRIGHT_RAD: f64 = PI / 18.0;
/// How long it must stay there to count as reached.
const HOLD_S: f64 = 1.0;

/// What a task measures, when it is a success, and the names under which traces and summaries
/// report it.
#[derive(Debug, Clone, PartialEq)]
pub struct Measure {
    /// The name of the measure, in traces.
    pub name: Cow<'static, str>,
    /// What it is, for the schema of traces.
    pub description: Cow<'static, str>,
    /// Its unit, and that of the bound.
    pub unit: Cow<'static, str>,
    /// The success, in one word.
    pub success: Cow<'static, str>,
    /// Magnitudes below this are a success.
    pub bound: f64,
    /// How long a success must last to count as reached, seconds.
    pub hold_s: f64,
    /// What an end of an episode by the body is called, in the plural, where it loses the task:
    /// `falls`. The run is then judged by their number and not by the share of success, which is
    /// high up to each of them. `None` for a task that is to be reached and held.
    pub loss: Option<Cow<'static, str>>,
}

impl Measure {
    /// Whether a value is a success.
    pub fn is_success(&self, value: f64) -> bool {
        value.abs() < self.bound
    }
}

/// What a run on a body is judged by.
pub trait Task: Send {
    /// The names of its results, and when it succeeds.
    fn measure(&self) -> &Measure;

    /// Measures the body as it is: the distance from the goal. NaN if it cannot be measured.
    fn value(&mut self, body: &dyn Body) -> f64;

    /// The score of a step: the body's own, unless the task has another.
    fn reward(&mut self, step: &Step) -> f64 {
        step.reward
    }
}

/// The task of keeping an angle at 0: of a pole from upright, or of a heading from its goal.
struct ZeroAngle {
    measure: Measure,
    angle_rad: fn(&[f64]) -> f64,
    /// Buffer of the body's state: a measurement does not allocate.
    state: Vec<f64>,
}

/// The task of keeping a pole upright, at an angle that `angle_rad` computes from a body's exact
/// state.
pub fn upright(angle_rad: fn(&[f64]) -> f64) -> Box<dyn Task> {
    zero_angle(angle_rad, "angle from upright", "upright")
}

/// The task of not dropping a pole that starts upright, at an angle that `angle_rad` computes from
/// a body's exact state: it is judged by its falls.
pub fn balance(angle_rad: fn(&[f64]) -> f64) -> Box<dyn Task> {
    Box::new(ZeroAngle {
        measure: Measure {
            loss: Some("falls".into()),
            ..angle_measure("angle from upright", "upright")
        },
        angle_rad,
        state: Vec::new(),
    })
}

/// The task of keeping an angle at 0, which `angle_rad` computes from a body's exact state: what
/// the angle is, and the success in one word.
pub fn zero_angle(
    angle_rad: fn(&[f64]) -> f64,
    description: &'static str,
    success: &'static str,
) -> Box<dyn Task> {
    Box::new(ZeroAngle {
        measure: angle_measure(description, success),
        angle_rad,
        state: Vec::new(),
    })
}

fn angle_measure(description: &'static str, success: &'static str) -> Measure {
    let (name, unit) = ("angle_rad".into(), "rad".into());
    Measure {
        name,
        description: description.into(),
        unit,
        success: success.into(),
        bound: UPRIGHT_RAD,
        hold_s: HOLD_S,
        loss: None,
    }
}

/// The task of keeping an element of the observation at a value.
struct Keep {
    measure: Measure,
    element: usize,
    target: f64,
    /// Buffer of the observation.
    observation: Vec<f32>,
}

/// The task of keeping an element of the observation within `bound` of a target, both in its
/// unit; the body's own reward scores it.
pub fn keep(element: usize, target: f64, bound: f64) -> Box<dyn Task> {
    let (name, description, success) = (
        "error".into(),
        "observed value from its target".into(),
        "on_target".into(),
    );
    let measure = Measure {
        name,
        description,
        unit: "".into(),
        success,
        bound,
        hold_s: HOLD_S,
        loss: None,
    };
    Box::new(Keep {
        measure,
        element,
        target,
        observation: Vec::new(),
    })
}

impl Task for Keep {
    fn measure(&self) -> &Measure {
        &self.measure
    }

    fn value(&mut self, body: &dyn Body) -> f64 {
        self.observation.resize(body.spec().observation_len(), 0.0);
        body.observe(&mut self.observation);
        self.observation
            .get(self.element)
            .map_or(f64::NAN, |value| f64::from(*value) - self.target)
    }
}

impl Task for ZeroAngle {
    fn measure(&self) -> &Measure {
        &self.measure
    }

    fn value(&mut self, body: &dyn Body) -> f64 {
        let Some(body) = body.exact_state() else {
            return f64::NAN;
        };
        self.state.clear();
        body.append_state(&mut self.state);
        (self.angle_rad)(&self.state)
    }
}
