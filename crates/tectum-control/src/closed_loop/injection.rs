//! Injected faults, at the boundary between the loop and its brain, and between the body and the
//! loop.

use std::fmt;
use std::ops::{Deref, DerefMut};

use tectum::{Error, InjectedFault, Result, RunStats};

use super::stop_switch::StopSwitch;
use crate::body::{Body, Push};
use crate::brain::Brain;
use crate::clock::Clock;

/// The kind of an injected fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// The tick reports a lost device; the brain's state there is not used again.
    DeviceLost,
    /// The tick's action is NaN.
    Nan,
    /// The tick's answer comes after the maximum number of periods that the loop waits for a late
    /// one.
    Slow,
    /// Sensors give NaN for ten periods.
    SensorLost,
    /// Sensors repeat one reading for ten periods.
    SensorStuck,
    /// Each sensor is off by half its range for one period.
    SensorOutlier,
    /// The emergency stop is pressed.
    Stop,
    /// The body is pushed, as its settings state.
    Push,
}

/// Length of a sensor fault in periods.
const SENSOR_PERIODS: u64 = 10;
/// What `sensor-outlier` was called in an earlier version; it goes with the next.
const OLD_OUTLIER: &str = "sensor-leap";

impl FaultKind {
    const ALL: [(FaultKind, &str); 8] = [
        (FaultKind::DeviceLost, "device-lost"),
        (FaultKind::Nan, "nan"),
        (FaultKind::Slow, "slow"),
        (FaultKind::SensorLost, "sensor-lost"),
        (FaultKind::SensorStuck, "sensor-stuck"),
        (FaultKind::SensorOutlier, "sensor-outlier"),
        (FaultKind::Stop, "stop"),
        (FaultKind::Push, "push"),
    ];

    fn is_brain_fault(self) -> bool {
        matches!(
            self,
            FaultKind::DeviceLost | FaultKind::Nan | FaultKind::Slow
        )
    }

    fn name(self) -> &'static str {
        Self::ALL
            .iter()
            .find(|(kind, _)| *kind == self)
            .map_or("", |(_, name)| name)
    }
}

/// A fault and when it occurs: the first tick at or after that time of the loop.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fault {
    /// The kind of fault.
    pub kind: FaultKind,
    /// When, in the body's time from tick 0, 0 or above.
    pub at_s: f64,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.kind.name(), self.at_s)
    }
}

impl std::str::FromStr for Fault {
    type Err = Error;

    /// Reads `device-lost@T`, `nan@T`, `slow@T`, `sensor-lost@T`, `sensor-stuck@T`,
    /// `sensor-outlier@T`, `stop@T` or `push@T`, T in seconds.
    ///
    /// # Errors
    /// `Invalid` for any other text.
    ///
    /// # Example
    /// ```
    /// use tectum_control::closed_loop::Fault;
    /// assert_eq!("nan@2.5".parse::<Fault>().unwrap().at_s, 2.5);
    /// assert!("nan@-1".parse::<Fault>().is_err());
    /// ```
    fn from_str(text: &str) -> Result<Self> {
        let refuse = || {
            let known = FaultKind::ALL
                .map(|(_, name)| format!("{name}@T"))
                .join(", ");
            Error::invalid(format!(
                "inject {text:?}: expected one of {known}, T in seconds, 0 or above"
            ))
        };
        let (name, at_s) = text.split_once('@').ok_or_else(refuse)?;
        let name = if name == OLD_OUTLIER {
            FaultKind::SensorOutlier.name()
        } else {
            name
        };
        let (kind, _) = FaultKind::ALL
            .iter()
            .find(|(_, known)| *known == name)
            .ok_or_else(refuse)?;
        let at_s = at_s
            .parse::<f64>()
            .ok()
            .filter(|at_s| at_s.is_finite() && *at_s >= 0.0)
            .ok_or_else(refuse)?;
        Ok(Self {
            kind: *kind,
            at_s: at_s.abs(),
        })
    }
}

/// A fault with the first tick at which it may occur and the one at which it occurred.
#[derive(Debug)]
struct Scheduled {
    fault: Fault,
    /// Its place among the faults of the run.
    place: usize,
    first: u64,
    triggered: Option<u64>,
}

impl Scheduled {
    fn is_due(&self, tick: u64) -> bool {
        self.first <= tick && self.triggered.is_none()
    }

    fn trigger(&mut self, tick: u64) -> InjectedFault {
        self.triggered = Some(tick);
        InjectedFault {
            fault: self.fault.to_string(),
            tick: Some(tick),
        }
    }

    /// Whether a sensor fault lasts at a tick.
    fn lasts(&self, tick: u64) -> bool {
        self.triggered
            .is_some_and(|triggered| (triggered..triggered + SENSOR_PERIODS).contains(&tick))
    }
}

/// The faults of a kind, in the order given.
fn scheduled(faults: &[Fault], dt_ns: u64, is_kind: impl Fn(FaultKind) -> bool) -> Vec<Scheduled> {
    // A time that is a whole number of periods, except for rounding, means that period.
    let first_tick = |at_s: f64| (at_s * 1e9 / dt_ns as f64 - 1e-6).ceil().max(0.0) as u64;
    let of_kind = faults
        .iter()
        .enumerate()
        .filter(|(_, fault)| is_kind(fault.kind));
    of_kind
        .map(|(place, fault)| Scheduled {
            fault: *fault,
            place,
            first: first_tick(fault.at_s),
            triggered: None,
        })
        .collect()
}

/// A body whose sensors fail, that is pushed, and whose emergency stop is pressed, at given times.
pub(super) struct FaultyBody {
    body: Box<dyn Body>,
    faults: Vec<Scheduled>,
    switch: StopSwitch,
    /// The reading that stuck sensors repeat.
    stuck: Vec<f32>,
}

impl FaultyBody {
    /// A body without faults so far, and its emergency stop.
    pub(super) fn new(body: Box<dyn Body>, switch: StopSwitch) -> Self {
        Self {
            body,
            faults: Vec::new(),
            switch,
            stuck: Vec::new(),
        }
    }

    /// The body.
    pub(super) fn into_body(self) -> Box<dyn Body> {
        self.body
    }

    pub(super) fn inject(&mut self, faults: &[Fault], dt_ns: u64) {
        self.faults = scheduled(faults, dt_ns, |kind| !kind.is_brain_fault());
    }

    /// Writes the observation, and what the faulty sensors read of it. Returns the faults that
    /// begin, for the receipt.
    pub(super) fn read(
        &mut self,
        tick: u64,
        observation: &mut [f32],
        reading: &mut [f32],
    ) -> Vec<InjectedFault> {
        self.body.observe(observation);
        reading.copy_from_slice(observation);
        let mut begun = Vec::new();
        for fault in self
            .faults
            .iter_mut()
            .filter(|fault| !matches!(fault.fault.kind, FaultKind::Stop | FaultKind::Push))
        {
            if fault.is_due(tick) {
                self.stuck.clear();
                self.stuck.extend_from_slice(reading);
                begun.push(fault.trigger(tick));
            }
            match (fault.fault.kind, fault.lasts(tick)) {
                (FaultKind::SensorLost, true) => reading.fill(f32::NAN),
                (FaultKind::SensorStuck, true) => reading.copy_from_slice(&self.stuck),
                (FaultKind::SensorOutlier, true) if fault.triggered == Some(tick) => {
                    let spec = self.body.spec();
                    for (channel, range) in spec.observation.iter().zip(spec.ranges()) {
                        let jump = 0.5 * (channel.high - channel.low);
                        reading[range].iter_mut().for_each(|number| *number += jump);
                    }
                }
                _ => {}
            }
        }
        let pushes = self.faults.iter_mut();
        for push in pushes.filter(|fault| fault.fault.kind == FaultKind::Push && fault.is_due(tick))
        {
            begun.push(push.trigger(tick));
            self.body.pushed().into_iter().for_each(Push::push);
        }
        if let Some(stop) = self
            .faults
            .iter_mut()
            .find(|fault| fault.fault.kind == FaultKind::Stop && fault.is_due(tick))
        {
            begun.push(stop.trigger(tick));
            self.switch.press();
        }
        begun
    }

    /// Whether an injected fault blinds the sensors.
    pub(super) fn is_sensor_lost(&self, tick: u64) -> bool {
        self.faults
            .iter()
            .any(|fault| fault.fault.kind == FaultKind::SensorLost && fault.lasts(tick))
    }
}

impl Deref for FaultyBody {
    type Target = dyn Body;

    fn deref(&self) -> &Self::Target {
        self.body.as_ref()
    }
}

impl DerefMut for FaultyBody {
    fn deref_mut(&mut self) -> &mut Self::Target {
        self.body.as_mut()
    }
}

/// The faults of the brain.
#[derive(Debug, Default)]
pub(super) struct BrainFaults {
    faults: Vec<Scheduled>,
}

impl BrainFaults {
    pub(super) fn new(faults: &[Fault], dt_ns: u64) -> Self {
        Self {
            faults: scheduled(faults, dt_ns, FaultKind::is_brain_fault),
        }
    }

    /// Queries the brain and applies the fault that is due: at most one per tick. Returns the fault
    /// for the receipt.
    pub(super) fn tick_with_faults(
        &mut self,
        brain: &mut dyn Brain,
        tick: u64,
        observation: &[f32],
        answer: &mut [f32],
        clock: &mut dyn Clock,
        slow_ns: u64,
    ) -> (Result<RunStats>, Option<InjectedFault>) {
        let Some(due) = self.faults.iter_mut().find(|fault| fault.is_due(tick)) else {
            return (brain.tick(observation, answer), None);
        };
        let injected = due.trigger(tick);
        let result = match due.fault.kind {
            FaultKind::DeviceLost => Err(Error::device_lost(format!(
                "injected fault {}: the device is reported lost",
                due.fault
            ))),
            FaultKind::Nan => brain
                .tick(observation, answer)
                .inspect(|_| answer.fill(f32::NAN)),
            FaultKind::Slow => {
                let result = brain.tick(observation, answer);
                let late_ns = clock.now_ns() + slow_ns;
                clock.wait_until(late_ns);
                result
            }
            FaultKind::SensorLost
            | FaultKind::SensorStuck
            | FaultKind::SensorOutlier
            | FaultKind::Stop
            | FaultKind::Push => {
                unreachable!("invariant: only faults of the brain are scheduled here")
            }
        };
        (result, Some(injected))
    }
}

/// Faults that never occurred, in the order given.
pub(super) fn pending(body: &FaultyBody, brain: &BrainFaults) -> Vec<InjectedFault> {
    let mut left: Vec<&Scheduled> = body
        .faults
        .iter()
        .chain(&brain.faults)
        .filter(|fault| fault.triggered.is_none())
        .collect();
    left.sort_by_key(|fault| fault.place);
    left.into_iter()
        .map(|fault| InjectedFault {
            fault: fault.fault.to_string(),
            tick: None,
        })
        .collect()
}
