//! What the driver's management library measures: energy, utilisation, power, temperature, clocks,
//! memory.

use std::sync::LazyLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nvml_wrapper::enum_wrappers::device::{Clock, Sampling, TemperatureSensor};
use nvml_wrapper::enums::device::SampleValue;
use nvml_wrapper::{Device, Nvml};

use crate::device::{Readings, Sensors};

/// The minimum time for a mean utilisation.
const MIN_SAMPLE_WINDOW: Duration = Duration::from_secs(1);

/// The library, looked up once per process.
static NVML: LazyLock<Option<Nvml>> = LazyLock::new(|| Nvml::init().ok());

/// The driver's release, such as `550.54.14`.
pub(super) fn driver_version() -> Option<String> {
    NVML.as_ref()?.sys_driver_version().ok()
}

/// The sensors of one device.
pub(super) struct NvmlSensors {
    device: Device<'static>,
}

impl NvmlSensors {
    /// The sensors of the device at a PCI address, where the library can be loaded and knows it.
    pub fn of(pci: &str) -> Option<Self> {
        Some(Self {
            device: NVML.as_ref()?.device_by_pci_bus_id(pci).ok()?,
        })
    }
}

impl Sensors for NvmlSensors {
    fn read(&self) -> Readings {
        let device = &self.device;
        Readings {
            energy_j: device
                .total_energy_consumption()
                .ok()
                .map(|millijoules| millijoules as f64 / 1e3),
            utilisation: device
                .utilization_rates()
                .ok()
                .map(|rates| f64::from(rates.gpu) / 100.0),
            power_w: device
                .power_usage()
                .ok()
                .map(|milliwatts| f64::from(milliwatts) / 1e3),
            temperature_c: device.temperature(TemperatureSensor::Gpu).ok(),
            clock_mhz: device.clock_info(Clock::SM).ok(),
            memory_clock_mhz: device.clock_info(Clock::Memory).ok(),
            memory_used_bytes: device.memory_info().ok().map(|memory| memory.used),
        }
    }

    fn mean_utilisation(&self, since: SystemTime) -> Option<f64> {
        let since_us = since.duration_since(UNIX_EPOCH).ok()?.as_micros() as u64;
        let samples = self
            .device
            .samples(Sampling::GpuUtilization, since_us)
            .ok()?;
        let samples: Vec<(u64, f64)> = samples
            .iter()
            .filter_map(|sample| Some((sample.timestamp, percent(&sample.value)?)))
            .collect();
        mean(&samples, since_us)
    }
}

fn percent(value: &SampleValue) -> Option<f64> {
    match *value {
        SampleValue::F64(value) => Some(value),
        SampleValue::U32(value) => Some(f64::from(value)),
        SampleValue::U64(value) => Some(value as f64),
        SampleValue::I64(value) => Some(value as f64),
    }
}

/// The mean of the samples from `since_us` on as a share of one; none unless they cover more than a
/// second. The driver keeps a limited number: of a long session they cover the end.
fn mean(samples: &[(u64, f64)], since_us: u64) -> Option<f64> {
    let within: Vec<_> = samples
        .iter()
        .filter(|(time_us, _)| *time_us >= since_us)
        .collect();
    let (first, last) = (
        within.iter().map(|(time, _)| time).min()?,
        within.iter().map(|(time, _)| time).max()?,
    );
    if last - first < MIN_SAMPLE_WINDOW.as_micros() as u64 {
        return None;
    }
    Some(
        within
            .iter()
            .map(|(_, percent)| percent / 100.0)
            .sum::<f64>()
            / within.len() as f64,
    )
}

#[cfg(test)]
mod tests {
    use super::mean;

    #[test]
    fn utilisation_is_a_mean_over_at_least_a_second_of_the_session() {
        let samples = [
            (500_000, 90.0),
            (1_000_000, 0.0),
            (1_600_000, 50.0),
            (2_100_000, 100.0),
        ];
        assert_eq!(mean(&samples, 1_000_000), Some(0.5));
        assert_eq!(mean(&samples, 1_500_000), None);
        assert_eq!(mean(&[], 0), None);
    }
}
