//! Faults made on purpose, at the boundary between the loop and its brain, and between its body and it.

use std::fmt;

use tectum::{Error, InjectedFault, Result, RunStats};

use crate::body::ObservationChannel;
use crate::brain::Brain;
use crate::clock::Clock;

/// What is made to go wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// The tick reports a lost device; what the brain holds there is not used again.
    DeviceLost,
    /// The tick's action is NaN.
    Nan,
    /// The tick's answer comes after the periods that a late one is waited for.
    Slow,
    /// Sensors give NaN for ten periods.
    SensorLost,
    /// Sensors repeat one reading for ten periods.
    SensorStuck,
    /// Each sensor is off by half its range for one period.
    SensorOutlier,
    /// The emergency stop is pressed.
    Stop,
}

/// Periods that a fault of the sensors lasts.
const SENSOR_PERIODS: u64 = 10;

impl FaultKind {
    const ALL: [(FaultKind, &str); 7] = [
        (FaultKind::DeviceLost, "device-lost"),
        (FaultKind::Nan, "nan"),
        (FaultKind::Slow, "slow"),
        (FaultKind::SensorLost, "sensor-lost"),
        (FaultKind::SensorStuck, "sensor-stuck"),
        (FaultKind::SensorOutlier, "sensor-leap"),
        (FaultKind::Stop, "stop"),
    ];

    fn is_sensor_fault(self) -> bool {
        matches!(self, FaultKind::SensorLost | FaultKind::SensorStuck | FaultKind::SensorOutlier)
    }

    fn is_brain_fault(self) -> bool {
        !self.is_sensor_fault() && self != FaultKind::Stop
    }

    fn name(self) -> &'static str {
        Self::ALL.iter().find(|(kind, _)| *kind == self).map_or("", |(_, name)| name)
    }
}

/// A fault and when it strikes: the first tick at or after that time of the loop.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fault {
    /// What goes wrong.
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

    /// Reads `device-lost@T`, `nan@T`, `slow@T`, `sensor-lost@T`, `sensor-stuck@T`, `sensor-leap@T` or `stop@T`, T in seconds.
    ///
    /// # Errors
    /// `Invalid` for any other text.
    ///
    /// # Example
    /// ```
    /// use tectum_models::closed_loop::Fault;
    /// assert_eq!("nan@2.5".parse::<Fault>().unwrap().at_s, 2.5);
    /// assert!("nan@-1".parse::<Fault>().is_err());
    /// ```
    fn from_str(text: &str) -> Result<Self> {
        let refuse = || {
            let known = FaultKind::ALL.map(|(_, name)| format!("{name}@T")).join(", ");
            Error::invalid(format!("inject {text:?}: expected one of {known}, T in seconds, 0 or above"))
        };
        let (name, at_s) = text.split_once('@').ok_or_else(refuse)?;
        let (kind, _) = FaultKind::ALL.iter().find(|(_, known)| *known == name).ok_or_else(refuse)?;
        let at_s = at_s.parse::<f64>().ok().filter(|at_s| at_s.is_finite() && *at_s >= 0.0).ok_or_else(refuse)?;
        Ok(Self { kind: *kind, at_s: at_s.abs() })
    }
}

/// The faults to come and those that have struck.
#[derive(Debug, Default)]
pub(super) struct Injection {
    /// Each with the first tick that it may strike and the one that it struck.
    faults: Vec<(Fault, u64, Option<u64>)>,
    /// The reading that stuck sensors repeat.
    stuck: Vec<f32>,
    /// How far a leap goes.
    leap: Vec<f32>,
}

impl Injection {
    pub(super) fn new(faults: &[Fault], dt_ns: u64, channels: &[ObservationChannel]) -> Self {
        // A time that is a whole number of periods, but for rounding, means that period.
        let first_tick = |at_s: f64| (at_s * 1e9 / dt_ns as f64 - 1e-6).ceil().max(0.0) as u64;
        let leap = channels.iter().map(|channel| 0.5 * (channel.high - channel.low)).collect();
        Self { faults: faults.iter().map(|fault| (*fault, first_tick(fault.at_s), None)).collect(), stuck: Vec::new(), leap }
    }

    /// Passes a reading through the faults of the sensors. Gives those that begin, for the receipt.
    pub(super) fn sense(&mut self, tick: u64, reading: &mut [f32]) -> Vec<InjectedFault> {
        let mut begun = Vec::new();
        for (fault, first, struck) in self.faults.iter_mut().filter(|(fault, ..)| fault.kind.is_sensor_fault()) {
            if struck.is_none() && *first <= tick {
                *struck = Some(tick);
                self.stuck.clear();
                self.stuck.extend_from_slice(reading);
                begun.push(InjectedFault { fault: fault.to_string(), tick: Some(tick) });
            }
            match (fault.kind, struck.is_some_and(|struck| tick < struck + SENSOR_PERIODS)) {
                (FaultKind::SensorLost, true) => reading.fill(f32::NAN),
                (FaultKind::SensorStuck, true) => reading.copy_from_slice(&self.stuck),
                (FaultKind::SensorOutlier, true) if *struck == Some(tick) => {
                    reading.iter_mut().zip(&self.leap).for_each(|(number, leap)| *number += leap);
                }
                _ => {}
            }
        }
        begun
    }

    /// Whether the emergency stop is pressed on purpose.
    pub(super) fn stop(&mut self, tick: u64) -> Option<InjectedFault> {
        let due = |(fault, first, struck): &&mut (Fault, u64, Option<u64>)| fault.kind == FaultKind::Stop && *first <= tick && struck.is_none();
        let (fault, _, struck) = self.faults.iter_mut().find(due)?;
        *struck = Some(tick);
        Some(InjectedFault { fault: fault.to_string(), tick: Some(tick) })
    }

    /// Whether sensors are lost on purpose.
    pub(super) fn blinds(&self, tick: u64) -> bool {
        let is_lost = |(fault, _, struck): &(Fault, u64, Option<u64>)| {
            fault.kind == FaultKind::SensorLost && struck.is_some_and(|struck| (struck..struck + SENSOR_PERIODS).contains(&tick))
        };
        self.faults.iter().any(is_lost)
    }

    /// Asks the brain through whatever fault is due: at most one a tick. Gives the fault for the receipt.
    pub(super) fn ask(
        &mut self,
        brain: &mut dyn Brain,
        tick: u64,
        observation: &[f32],
        answer: &mut [f32],
        clock: &mut dyn Clock,
        slow_ns: u64,
    ) -> (Result<RunStats>, Option<InjectedFault>) {
        let due = self.faults.iter_mut().find(|(fault, first, struck)| fault.kind.is_brain_fault() && *first <= tick && struck.is_none());
        let Some((fault, _, struck)) = due else { return (brain.tick(observation, answer), None) };
        *struck = Some(tick);
        let result = match fault.kind {
            FaultKind::DeviceLost => Err(Error::device_lost(format!("injected fault {fault}: the device is reported lost"))),
            FaultKind::Nan => brain.tick(observation, answer).inspect(|_| answer.fill(f32::NAN)),
            FaultKind::Slow => {
                let result = brain.tick(observation, answer);
                let late_ns = clock.now_ns() + slow_ns;
                clock.wait_until(late_ns);
                result
            }
            FaultKind::SensorLost | FaultKind::SensorStuck | FaultKind::SensorOutlier | FaultKind::Stop => {
                unreachable!("invariant: only faults of the brain were asked for")
            }
        };
        (result, Some(InjectedFault { fault: fault.to_string(), tick: Some(tick) }))
    }

    /// Whether a fault struck this tick.
    pub(super) fn has_triggered(&self, tick: u64) -> bool {
        self.faults.iter().any(|(fault, _, struck)| fault.kind.is_brain_fault() && *struck == Some(tick))
    }

    /// Faults that never struck.
    pub(super) fn unstruck(&self) -> impl Iterator<Item = InjectedFault> {
        let left = self.faults.iter().filter(|(.., struck)| struck.is_none());
        left.map(|(fault, ..)| InjectedFault { fault: fault.to_string(), tick: None })
    }
}
