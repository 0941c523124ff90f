//! `tectum devices`: lists the devices, and measures their speed.

use clap::Args;
use serde::Serialize;
use tectum::{
    AbsentDevice, Device, DeviceInfo, DeviceKind, Measurement, Readings, Result, ThreadPool,
};

use crate::progress::Bar;
use crate::table::{bytes, print, print_json, table};

/// Lists the devices of this machine.
#[derive(Args)]
pub struct DevicesArgs {
    /// Prints one line of JSON.
    #[arg(long)]
    json: bool,
    /// Measures copy bandwidth, transfer rates, launch latency and the rate of a matrix product;
    /// about a second each.
    #[arg(long)]
    measure: bool,
}

/// The output of `--json`.
#[derive(Serialize)]
struct Listing {
    devices: Vec<Entry>,
    absent: Vec<AbsentDevice>,
}

/// A device as printed with `--json`.
#[derive(Serialize)]
struct Entry {
    #[serde(flatten)]
    info: DeviceInfo,
    #[serde(skip_serializing_if = "Option::is_none")]
    measured: Option<Measurement>,
    /// What its sensors showed right after the measurement.
    #[serde(skip_serializing_if = "Option::is_none")]
    readings: Option<Readings>,
    /// Why it could not be measured; a fault of one device does not hide the others.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// Runs the command.
///
/// # Errors
/// A standard output that cannot be written; an impossible number of threads in the environment.
pub fn devices(args: &DevicesArgs) -> Result<()> {
    ThreadPool::start_global(None)?;
    let waiting = args.measure.then(|| Bar::waiting("measuring devices"));
    let entries = Device::list()
        .into_iter()
        .map(|info| entry(info, args.measure))
        .collect::<Vec<_>>();
    drop(waiting);
    let absent = Device::absent();
    if args.json {
        return print_json(&Listing {
            devices: entries,
            absent,
        });
    }
    let head = ["id", "name", "kind", "driver", "units", "width", "memory"]
        .map(str::to_owned)
        .to_vec();
    let mut text = table(&[vec![head], entries.iter().map(row).collect()].concat());
    if args.measure {
        let head = ["id", "copy/s", "up/s", "down/s", "launch", "matrix product"]
            .map(str::to_owned)
            .to_vec();
        text += "\n";
        text += &table(&[vec![head], entries.iter().map(measured_row).collect()].concat());
    }
    if !absent.is_empty() {
        let head = ["absent", "why"].map(str::to_owned).to_vec();
        let row = |absent: &AbsentDevice| vec![absent.device.clone(), absent.reason.clone()];
        text += "\n";
        text += &table(&[vec![head], absent.iter().map(row).collect()].concat());
    }
    print(&text)
}

fn entry(info: DeviceInfo, measure: bool) -> Entry {
    // The null device executes nothing, so there is nothing to measure.
    if !measure || info.kind == DeviceKind::Null {
        return Entry {
            info,
            measured: None,
            readings: None,
            error: None,
        };
    }
    match Device::open(&info.id).and_then(|device| Ok((device.measure()?, device.readings()))) {
        Ok((measured, readings)) => Entry {
            info,
            measured: Some(measured),
            readings,
            error: None,
        },
        Err(error) => Entry {
            info,
            measured: None,
            readings: None,
            error: Some(error.to_string()),
        },
    }
}

fn row(entry: &Entry) -> Vec<String> {
    let info = &entry.info;
    let kind = format!("{:?}", info.kind).to_lowercase();
    let width = if info.simd_width.0 == info.simd_width.1 {
        info.simd_width.0.to_string()
    } else {
        format!("{}-{}", info.simd_width.0, info.simd_width.1)
    };
    vec![
        info.id.clone(),
        info.name.clone(),
        kind,
        info.driver.clone(),
        info.compute_units
            .map_or_else(|| "-".to_owned(), |units| units.to_string()),
        width,
        info.memory_bytes
            .map_or_else(|| "-".to_owned(), |memory| bytes(memory as f64)),
    ]
}

fn measured_row(entry: &Entry) -> Vec<String> {
    let id = entry.info.id.clone();
    let Some(measured) = &entry.measured else {
        return vec![
            id,
            entry
                .error
                .clone()
                .unwrap_or_else(|| "nothing to measure".to_owned()),
        ];
    };
    let shared = || "shared".to_owned();
    vec![
        id,
        bytes(measured.copy_bytes_per_s),
        measured.upload_bytes_per_s.map_or_else(shared, bytes),
        measured.download_bytes_per_s.map_or_else(shared, bytes),
        format!("{:.1} us", measured.launch_s * 1e6),
        format!("{:.1} GFLOP/s", measured.gemm_flop_per_s / 1e9),
    ]
}
