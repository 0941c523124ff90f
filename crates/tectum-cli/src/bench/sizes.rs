//! `tectum bench sizes`: an operation on the CPU and on a GPU over sizes.

use clap::Args;
use tectum::{Device, DeviceInfo, DeviceKind, Error, Result};
use tectum_bench::bench;
use tectum_bench::bench::{Interval, SizeRow, SizeTable, Timing};

use crate::count::counted;
use crate::interrupt::Interrupt;
use crate::progress::{Bar, Unit};
use crate::table::{print, print_json, table};
use crate::threads::ThreadsArgs;

/// Compares the CPU with a GPU over sizes: times, speed-up, and the size from which the GPU is
/// faster.
///
/// Both are measured in the same rounds: the GPU with operands in its memory, and with copies to it
/// and back. Software adapters are no GPUs: one that is named is measured, but no break-even is
/// stated.
#[derive(Args)]
pub struct SizesArgs {
    /// The device: cuda:N, vulkan:N, metal:N or dx12:N; the first GPU if not given.
    #[arg(long)]
    device: Option<String>,
    #[command(flatten)]
    threads: ThreadsArgs,
    /// The elementwise operation, over numbers of 32 bits.
    #[arg(long, default_value = "add", value_name = "NAME")]
    operation: String,
    /// The largest size; sizes are 1K and each four times the one before. K, M: 1,024 and 1,048,576
    /// elements.
    #[arg(long, default_value = "64M", value_name = "SIZE")]
    max: Size,
    /// Rounds of each size.
    #[arg(long, default_value_t = 9, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// Prints the table as one line of JSON.
    #[arg(long)]
    json: bool,
}

/// The smallest size.
const MIN: usize = 1 << 10;
/// The largest: operands are indexed in 32 bits.
const MAX: usize = 1 << 28;

/// A number of elements.
#[derive(Clone, Copy)]
struct Size(usize);

impl std::str::FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Size, String> {
        let (digits, scale) = match text.strip_suffix(['k', 'K']) {
            Some(digits) => (digits, 1 << 10),
            None => text
                .strip_suffix('M')
                .map_or((text, 1), |digits| (digits, 1 << 20)),
        };
        let size = digits
            .parse::<usize>()
            .ok()
            .and_then(|size| size.checked_mul(scale));
        size.filter(|size| (MIN..=MAX).contains(size))
            .map(Size)
            .ok_or_else(|| format!("a size from {} to {} is needed", shown(MIN), shown(MAX)))
    }
}

/// A power of two as K or M.
fn shown(size: usize) -> String {
    match size {
        size if size >= 1 << 20 && size.is_multiple_of(1 << 20) => format!("{}M", size >> 20),
        size if size >= 1 << 10 && size.is_multiple_of(1 << 10) => format!("{}K", size >> 10),
        size => size.to_string(),
    }
}

/// Runs the command.
///
/// # Errors
/// An unknown device or operation; what the devices report.
pub fn sizes(args: &SizesArgs) -> Result<()> {
    args.threads.apply()?;
    let cpu = Device::open("cpu")?;
    let device = match &args.device {
        Some(id) => Some(Device::open(id)?),
        None => Device::list()
            .iter()
            .find(|info| is_gpu(info))
            .map(|info| Device::open(&info.id))
            .transpose()?,
    };
    if let Some(device) = device
        .as_ref()
        .filter(|device| matches!(device.info().kind, DeviceKind::Cpu | DeviceKind::Null))
    {
        return Err(Error::invalid(format!(
            "bench sizes: {} is no GPU; the CPU is the baseline",
            device.info().id
        )));
    }
    let elements: Vec<usize> = std::iter::successors(Some(MIN), |size| size.checked_mul(4))
        .take_while(|size| *size <= args.max.0)
        .collect();
    let (bar, interrupt) = (Bar::new(Unit::Steps), Interrupt::watch()?);
    let found = bench::sizes(
        &args.operation,
        &cpu,
        device.as_ref(),
        &elements,
        args.rounds as usize,
        &mut bar.watch_until(&interrupt),
    )?;
    bar.clear();
    let found = SizeTable {
        // Software is measured, and never counted as a GPU.
        break_even: found
            .break_even
            .filter(|_| device.as_ref().is_some_and(|device| is_gpu(device.info()))),
        break_even_with_copies: found
            .break_even_with_copies
            .filter(|_| device.as_ref().is_some_and(|device| is_gpu(device.info()))),
        ..found
    };
    if args.json {
        print_json(&found)
    } else {
        print(&text(&found, device.as_ref().map(Device::info)))
    }
}

/// Whether it is a GPU, not one in software.
fn is_gpu(info: &DeviceInfo) -> bool {
    !info.software
        && !matches!(
            info.kind,
            DeviceKind::Cpu | DeviceKind::Null | DeviceKind::Software
        )
}

fn text(found: &SizeTable, device: Option<&DeviceInfo>) -> String {
    let time = |time: &Interval| format!("{:.1} us", 1e6 * time.median);
    let cells = |timing: Option<&Timing>| {
        timing.map_or_else(
            || ["-".to_owned(), String::new()],
            |timing| {
                [
                    time(&timing.seconds),
                    super::show::interval(&timing.speedup),
                ]
            },
        )
    };
    let row = |row: &SizeRow| {
        let first = vec![shown(row.elements), time(&row.baseline_s)];
        let rest = match (&row.refused, device) {
            (Some(reason), _) => vec![reason.clone()],
            (None, Some(_)) => [
                cells(row.resident.as_ref()),
                cells(row.with_copies.as_ref()),
            ]
            .concat(),
            (None, None) => Vec::new(),
        };
        [first, rest].concat()
    };
    let mut head = vec!["elements".to_owned(), found.baseline.id.clone()];
    if let Some(info) = device {
        head.extend([
            info.id.clone(),
            "times as fast [low, high]".to_owned(),
            "with copies".to_owned(),
            "times as fast [low, high]".to_owned(),
        ]);
    }
    let mut text = format!(
        "{} of f32, medians\n\n{}\n",
        found.operation,
        table(&[vec![head], found.rows.iter().map(row).collect()].concat())
    );
    text += &format!("{}: {}\n", found.baseline.id, found.baseline.name);
    if let Some(planned) = found.interrupted {
        text += &format!(
            "interrupted: {} of {} measured\n",
            found.rows.len(),
            counted(planned, "size")
        );
    }
    let Some(info) = device else {
        return text + "no GPU here: only the CPU was measured; software adapters do not count\n";
    };
    text += &format!("{info}\n");
    if !is_gpu(info) {
        return text
            + &format!(
                "break-even: none is stated, since {} is software and no GPU\n",
                info.id
            );
    }
    if found.interrupted.is_some() {
        return text + "break-even: none is stated, since not all sizes were measured\n";
    }
    let from = |size: Option<usize>| {
        size.map_or_else(
            || "at none of these sizes".to_owned(),
            |size| format!("from {} elements on", shown(size)),
        )
    };
    text + &format!(
        "break-even: {} is faster {}; with copies {}\n",
        info.id,
        from(found.break_even),
        from(found.break_even_with_copies)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_and_shown_in_k_and_m() {
        let read = |text: &str| text.parse::<Size>().map(|size| size.0);
        assert_eq!(
            (read("1K"), read("64M"), read("2048"), read("4k")),
            (Ok(1024), Ok(64 << 20), Ok(2048), Ok(4096))
        );
        for wrong in ["", "0", "1", "-4K", "1G", "512M", "99999999999999999999M"] {
            assert_eq!(
                read(wrong),
                Err("a size from 1K to 256M is needed".to_owned()),
                "{wrong}"
            );
        }
        assert_eq!(
            [1024, 4096, 1 << 20, 64 << 20, 1500].map(shown),
            ["1K", "4K", "1M", "64M", "1500"]
        );
    }

    /// The table of a GPU names the break-even, that of a software adapter does not.
    #[test]
    fn software_is_no_gpu() {
        let around = |value: f64| Interval::around(value, 0.0);
        let timing = |speedup: f64| {
            Some(Timing {
                seconds: around(1e-3),
                speedup: around(speedup),
            })
        };
        let row = |elements, speedup| SizeRow {
            elements,
            baseline_s: around(1e-3),
            resident: timing(speedup),
            with_copies: timing(0.5),
            refused: None,
        };
        let cpu = Device::open("cpu").expect("present");
        let brief = bench::DeviceBrief {
            id: "cpu".into(),
            name: "a CPU".into(),
            driver: String::new(),
            kind: "cpu".into(),
        };
        let rows = vec![row(1 << 10, 0.5), row(1 << 20, 4.0)];
        let found = SizeTable {
            operation: "add".into(),
            baseline: brief.clone(),
            device: Some(brief),
            rows,
            interrupted: None,
            break_even: Some(1 << 20),
            break_even_with_copies: None,
        };
        let gpu = DeviceInfo {
            id: "cuda:0".into(),
            kind: DeviceKind::Discrete,
            software: false,
            ..cpu.info().clone()
        };
        let shown = text(&found, Some(&gpu));
        assert!(shown.contains("break-even: cuda:0 is faster from 1M elements on; with copies at none of these sizes\n"), "{shown}");
        let software = DeviceInfo {
            id: "vulkan:0".into(),
            kind: DeviceKind::Software,
            software: true,
            ..gpu
        };
        let shown = text(&found, Some(&software));
        assert!(
            shown.contains("break-even: none is stated, since vulkan:0 is software and no GPU\n"),
            "{shown}"
        );
        assert!(text(&found, None).ends_with("software adapters do not count\n"));
    }
}
