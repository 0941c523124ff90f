//! The host that a benchmark ran on, and the day.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use tectum::{Device, Result};

/// The host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// The processor's name.
    pub cpu: String,
    /// Threads that the CPU device, and every peer, uses.
    pub threads: u32,
    /// The widest instruction set that the native twins are compiled for and the processor has.
    pub simd: String,
    /// Memory in bytes, if known.
    pub memory_bytes: Option<u64>,
    /// Operating system and architecture.
    pub system: String,
    /// Load average of the last minute relative to the number of cores; none where the system does
    /// not report it.
    pub load: Option<f64>,
}

impl Machine {
    /// Inspects this machine.
    pub(super) fn here() -> Result<Self> {
        let cpu = Device::open("cpu")?;
        let info = cpu.info();
        let loads = std::fs::read_to_string("/proc/loadavg").ok();
        Ok(Self {
            cpu: info.name.clone(),
            threads: info.compute_units.unwrap_or(1),
            simd: simd().to_owned(),
            memory_bytes: info.memory_bytes,
            system: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
            load: loads.and_then(|text| text.split(' ').next()?.parse().ok()),
        })
    }
}

#[cfg(target_arch = "x86_64")]
fn simd() -> &'static str {
    match (
        is_x86_feature_detected!("avx512f"),
        is_x86_feature_detected!("avx2"),
    ) {
        (true, _) => "avx512",
        (false, true) => "avx2",
        _ => "sse2",
    }
}

#[cfg(target_arch = "aarch64")]
fn simd() -> &'static str {
    "neon"
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn simd() -> &'static str {
    "scalar"
}

/// Today in UTC, `YYYY-MM-DD`.
pub(super) fn today() -> String {
    let seconds = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs());
    let (year, month, day) = civil(seconds / 86_400);
    format!("{year:04}-{month:02}-{day:02}")
}

/// The Gregorian date of a day counted from 1 January 1970.
///
/// # Source
/// H. Hinnant, "chrono-Compatible Low-Level Date Algorithms", `civil_from_days`.
pub(super) fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}
