//! Injected faults, at the boundary between the loop and its brain, and between the body and the loop.

use std::fmt;

use tectum::{Error, InjectedFault, Result, RunStats};

use crate::body::ObservationChannel;
use crate::brain::Brain;
use crate::clock::Clock;

/// The kind of an injected fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// The tick reports a lost device; the brain's state there is not used again.
    DeviceLost,
    /// The tick's action is NaN.
    Nan,
    /// The tick's answer comes after the maximum number of periods that the loop waits for a late one.
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

/// Length of a sensor fault in periods.
const SENSOR_PERIODS: u64 = 10;
/// What `sensor-outlier` was called in an earlier version; it goes with the next.
const OLD_OUTLIER: &str = "sensor-leap";

impl FaultKind {
    const ALL: [(FaultKind, &str); 7] = [
        (FaultKind::DeviceLost, "device-lost"),
        (FaultKind::Nan, "nan"),
        (FaultKind::Slow, "slow"),
        (FaultKind::SensorLost, "sensor-lost"),
        (FaultKind::SensorStuck, "sensor-stuck"),
        (FaultKind::SensorOutlier, "sensor-outlier"),
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

    /// Reads `device-lost@T`, `nan@T`, `slow@T`, `sensor-lost@T`, `sensor-stuck@T`, `sensor-outlier@T` or `stop@T`, T in seconds.
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
            let known = FaultKind::ALL.map(|(_, name)| format!("{name}@T")).join(", ");
            Error::invalid(format!("inject {text:?}: expected one of {known}, T in seconds, 0 or above"))
        };
        let (name, at_s) = text.split_once('@').ok_or_else(refuse)?;
        let name = if name == OLD_OUTLIER { FaultKind::SensorOutlier.name() } else { name };
        let (kind, _) = FaultKind::ALL.iter().find(|(_, known)| *known == name).ok_or_else(refuse)?;
        let at_s = at_s.parse::<f64>().ok().filter(|at_s| at_s.is_finite() && *at_s >= 0.0).ok_or_else(refuse)?;
        Ok(Self { kind: *kind, at_s: at_s.abs() })
    }
}

/// The pending faults and those that have occurred.
#[derive(Debug, Default)]
pub(super) struct Injection {
    /// Each with the first tick at which it may occur and the one at which it occurred.
    faults: Vec<(Fault, u64, Option<u64>)>,
    /// The reading that stuck sensors repeat.
    stuck: Vec<f32>,
    /// Size of an outlier.
    outlier_offset: Vec<f32>,
}

impl Injection {
    pub(super) fn new(faults: &[Fault], dt_ns: u64, channels: &[ObservationChannel]) -> Self {
        // A time that is a whole number of periods, except for rounding, means that period.
        let first_tick = |at_s: f64| (at_s * 1e9 / dt_ns as f64 - 1e-6).ceil().max(0.0) as u64;
        let outlier_offset = channels.iter().map(|channel| 0.5 * (channel.high - channel.low)).collect();
        Self { faults: faults.iter().map(|fault| (*fault, first_tick(fault.at_s), None)).collect(), stuck: Vec::new(), outlier_offset }
    }

    /// Applies the sensor faults to a reading. Returns those that begin, for the receipt.
    pub(super) fn apply_sensor_faults(&mut self, tick: u64, reading: &mut [f32]) -> Vec<InjectedFault> {
        let mut begun = Vec::new();
        for (fault, first, triggered_tick) in self.faults.iter_mut().filter(|(fault, ..)| fault.kind.is_sensor_fault()) {
            if triggered_tick.is_none() && *first <= tick {
                *triggered_tick = Some(tick);
                self.stuck.clear();
                self.stuck.extend_from_slice(reading);
                begun.push(InjectedFault { fault: fault.to_string(), tick: Some(tick) });
            }
            match (fault.kind, triggered_tick.is_some_and(|triggered_tick| tick < triggered_tick + SENSOR_PERIODS)) {
                (FaultKind::SensorLost, true) => reading.fill(f32::NAN),
                (FaultKind::SensorStuck, true) => reading.copy_from_slice(&self.stuck),
                (FaultKind::SensorOutlier, true) if *triggered_tick == Some(tick) => {
                    reading.iter_mut().zip(&self.outlier_offset).for_each(|(number, offset)| *number += offset);
                }
                _ => {}
            }
        }
        begun
    }

    /// Whether an injected emergency stop is due.
    pub(super) fn stop(&mut self, tick: u64) -> Option<InjectedFault> {
        let due = |(fault, first, triggered): &&mut (Fault, u64, Option<u64>)| fault.kind == FaultKind::Stop && *first <= tick && triggered.is_none();
        let (fault, _, triggered) = self.faults.iter_mut().find(due)?;
        *triggered = Some(tick);
        Some(InjectedFault { fault: fault.to_string(), tick: Some(tick) })
    }

    /// Whether an injected fault blinds the sensors.
    pub(super) fn is_sensor_lost(&self, tick: u64) -> bool {
        let is_lost = |(fault, _, triggered): &(Fault, u64, Option<u64>)| {
            fault.kind == FaultKind::SensorLost && triggered.is_some_and(|triggered| (triggered..triggered + SENSOR_PERIODS).contains(&tick))
        };
        self.faults.iter().any(is_lost)
    }

    /// Queries the brain and applies the fault that is due: at most one per tick. Returns the fault for the receipt.
    pub(super) fn tick_with_faults(
        &mut self,
        brain: &mut dyn Brain,
        tick: u64,
        observation: &[f32],
        answer: &mut [f32],
        clock: &mut dyn Clock,
        slow_ns: u64,
    ) -> (Result<RunStats>, Option<InjectedFault>) {
        let due = self.faults.iter_mut().find(|(fault, first, triggered)| fault.kind.is_brain_fault() && *first <= tick && triggered.is_none());
        let Some((fault, _, triggered)) = due else { return (brain.tick(observation, answer), None) };
        *triggered = Some(tick);
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

    /// Whether a fault occurred in this tick.
    pub(super) fn has_triggered(&self, tick: u64) -> bool {
        self.faults.iter().any(|(fault, _, triggered)| fault.kind.is_brain_fault() && *triggered == Some(tick))
    }

    /// Faults that never occurred.
    pub(super) fn pending(&self) -> impl Iterator<Item = InjectedFault> {
        let left = self.faults.iter().filter(|(.., triggered)| triggered.is_none());
        left.map(|(fault, ..)| InjectedFault { fault: fault.to_string(), tick: None })
    }
}
