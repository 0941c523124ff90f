//! One operation on two devices over sizes: where the second becomes faster than the first.

use serde::Serialize;
use tectum::operation::elementwise::{Arity, OPS};
use tectum::{
    DType, Device, Error, ErrorKind, Executable, PlanBuilder, Result, View, Watch, WorkProgress,
};

use super::harness::batch;
use super::interval::median;
use super::{DeviceBrief, Interval, fill};

/// Time and runs of a size in a round.
const SECONDS: f64 = 0.01;
const RUNS: usize = 3;

/// Times of an operation over sizes, on a baseline and on a device.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SizeTable {
    /// An elementwise operation.
    pub operation: String,
    /// The baseline, usually the CPU.
    pub baseline: DeviceBrief,
    /// The device that is compared with it; none if only the baseline was measured.
    pub device: Option<DeviceBrief>,
    /// One for each size; of an interrupted run, those that were measured.
    pub rows: Vec<SizeRow>,
    /// For a run that was interrupted: how many sizes it was to measure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interrupted: Option<usize>,
    /// The smallest measured size from which on the device is faster at every size, its operands in
    /// its memory.
    pub break_even: Option<usize>,
    /// The same with the operands copied to the device and the result back.
    pub break_even_with_copies: Option<usize>,
}

/// One size.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SizeRow {
    /// Elements of each operand, f32.
    pub elements: usize,
    /// Time on the baseline, in seconds.
    pub baseline_s: Interval,
    /// On the device, its operands in its memory.
    pub resident: Option<Timing>,
    /// On the device, with the operands copied to it and the result back.
    pub with_copies: Option<Timing>,
    /// Why the device could not run this size.
    pub refused: Option<String>,
}

/// A time on the device.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Timing {
    /// Seconds.
    pub seconds: Interval,
    /// The baseline's time over this one: above 1 the device is faster.
    pub speedup: Interval,
}

/// An operation that is ready to run: the baseline's, the device's in its memory and with copies.
struct Prepared {
    baseline: Executable,
    device: Option<[Executable; 2]>,
    refused: Option<String>,
}

/// Measures an elementwise operation on a baseline and on a device, in the same rounds.
///
/// If the watch, which sees each size before it is measured, breaks the run off, the table has the
/// sizes that were measured by then, and no break-even.
///
/// # Errors
/// `Invalid` for an unknown operation, no sizes or no rounds; what the baseline reports. A size
/// that the device refuses or has no memory for is a row with the reason. `Cancelled` if the watch
/// breaks it off before the first size.
pub fn sizes(
    operation: &str,
    baseline: &Device,
    device: Option<&Device>,
    elements: &[usize],
    rounds: usize,
    watch: &mut Watch<'_>,
) -> Result<SizeTable> {
    let Some(op) = OPS.iter().find(|op| op.name == operation) else {
        let known: Vec<&str> = OPS.iter().map(|op| op.name).collect();
        return Err(Error::invalid(format!(
            "operation {operation:?} is unknown; known: {}",
            known.join(", ")
        )));
    };
    if elements.is_empty() || rounds == 0 {
        return Err(Error::invalid(format!(
            "sizes: {} sizes in {rounds} rounds; both need at least 1",
            elements.len()
        )));
    }
    let mut rows = Vec::with_capacity(elements.len());
    let mut interrupted = None;
    for (done, &count) in elements.iter().enumerate() {
        let stage = format!("{operation} of {count} elements");
        let progress = WorkProgress {
            stage: &stage,
            done: done as u64,
            total: elements.len() as u64,
        };
        match progress.report(watch) {
            Err(_) if done > 0 => {
                interrupted = Some(elements.len());
                break;
            }
            outcome => outcome?,
        }
        rows.push(row(
            Prepared::new(op.name, op.arity, count, baseline, device)?,
            count,
            rounds,
        )?);
    }
    let (break_even, break_even_with_copies) = match interrupted {
        Some(_) => (None, None),
        None => (
            from(&rows, |row| row.resident.as_ref()),
            from(&rows, |row| row.with_copies.as_ref()),
        ),
    };
    let (baseline, device) = (DeviceBrief::of(baseline), device.map(DeviceBrief::of));
    Ok(SizeTable {
        operation: operation.to_owned(),
        baseline,
        device,
        rows,
        interrupted,
        break_even,
        break_even_with_copies,
    })
}

/// The first size of the last rows in all of which the device is faster.
fn from(rows: &[SizeRow], timing: impl Fn(&SizeRow) -> Option<&Timing>) -> Option<usize> {
    let is_faster = |row: &&SizeRow| timing(row).is_some_and(|timing| timing.speedup.median > 1.0);
    // Sizes that the device refused say nothing.
    rows.iter()
        .rev()
        .skip_while(|row| row.refused.is_some())
        .take_while(is_faster)
        .last()
        .map(|row| row.elements)
}

impl Prepared {
    fn new(
        name: &'static str,
        arity: Arity,
        count: usize,
        baseline: &Device,
        device: Option<&Device>,
    ) -> Result<Self> {
        let on_device = |device: &Device| {
            Ok([
                compiled(name, arity, count, device, false)?,
                compiled(name, arity, count, device, true)?,
            ])
        };
        let (device, refused) = match device.map(on_device).transpose() {
            Ok(device) => (device, None),
            Err(error)
                if matches!(
                    Error::kind(&error),
                    ErrorKind::OutOfMemory | ErrorKind::Unsupported
                ) =>
            {
                (None, Some(error.to_string()))
            }
            Err(error) => return Err(error),
        };
        Ok(Self {
            baseline: compiled(name, arity, count, baseline, false)?,
            device,
            refused,
        })
    }
}

/// The operation on a device: over its own memory, or over arrays of the host.
fn compiled(
    name: &'static str,
    arity: Arity,
    count: usize,
    device: &Device,
    has_copies: bool,
) -> Result<Executable> {
    let mut plan = PlanBuilder::new(name);
    let operands = if arity == Arity::Unary { 1 } else { 2 };
    let read = |plan: &mut PlanBuilder| {
        if has_copies {
            plan.input("operand", DType::F32, count)
        } else {
            plan.state("operand", DType::F32, count)
        }
    };
    let inputs: Vec<View> = (0..operands).map(|_| read(&mut plan)).collect();
    let result = if has_copies {
        plan.output("result", DType::F32, count)
    } else {
        plan.state("result", DType::F32, count)
    };
    match inputs[..] {
        [x] => plan.unary(name, x, result)?,
        _ => plan.binary(name, inputs[0], inputs[1], result)?,
    }
    let mut run = plan.finish()?.compile(device)?;
    for (view, stream) in inputs.into_iter().zip(0..) {
        match has_copies {
            true => run.input::<f32>(view).fill(0.5),
            false => fill(&mut run, view, stream, 2)?,
        }
    }
    Ok(run)
}

fn row(mut prepared: Prepared, elements: usize, rounds: usize) -> Result<SizeRow> {
    let mut times: [Vec<f64>; 3] = Default::default();
    for round in 0..rounds {
        let mut work: Vec<(usize, &mut Executable)> = vec![(0, &mut prepared.baseline)];
        work.extend(
            prepared
                .device
                .iter_mut()
                .flatten()
                .zip(1..)
                .map(|(run, place)| (place, run)),
        );
        // The first of one round is the last of the next, so that a drift of clocks favours none.
        if round % 2 == 1 {
            work.reverse();
        }
        for (place, run) in work {
            times[place].push(median(&batch(SECONDS, RUNS, || run.run().map(|_| ()))?));
        }
    }
    let interval = |times: &[f64]| Interval::of(times);
    let baseline_s = interval(&times[0]).ok_or_else(|| Error::invalid("sizes: no round"))?;
    let timing = |times: &[f64]| {
        interval(times).map(|seconds| Timing {
            seconds,
            speedup: baseline_s.over(&seconds),
        })
    };
    Ok(SizeRow {
        elements,
        baseline_s,
        resident: timing(&times[1]),
        with_copies: timing(&times[2]),
        refused: prepared.refused,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row_of(elements: usize, speedup: Option<f64>) -> SizeRow {
        let around = |value: f64| Interval::around(value, 0.0);
        let timing = speedup.map(|speedup| Timing {
            seconds: around(1.0),
            speedup: around(speedup),
        });
        SizeRow {
            elements,
            baseline_s: around(1.0),
            resident: timing,
            with_copies: None,
            refused: speedup.is_none().then(|| "too large".to_owned()),
        }
    }

    #[test]
    fn the_break_even_is_where_the_device_is_faster_from_then_on() {
        let of = |speedups: &[Option<f64>]| {
            from(
                &speedups
                    .iter()
                    .zip(1..)
                    .map(|(speedup, size)| row_of(size, *speedup))
                    .collect::<Vec<_>>(),
                |row| row.resident.as_ref(),
            )
        };
        assert_eq!(of(&[Some(0.1), Some(0.9), Some(1.5), Some(30.0)]), Some(3));
        assert_eq!(of(&[Some(0.1), Some(1.1), Some(0.9), Some(30.0)]), Some(4));
        assert_eq!(of(&[Some(2.0), Some(3.0), None]), Some(1));
        assert_eq!((of(&[Some(0.1), Some(0.9)]), of(&[None])), (None, None));
    }

    #[test]
    fn every_operation_is_measured_on_both_and_a_wrong_name_is_refused() {
        let cpu = Device::open("cpu").expect("present");
        let measure = |operation: &str, elements: &[usize]| {
            sizes(
                operation,
                &cpu,
                Some(&cpu),
                elements,
                2,
                &mut WorkProgress::ignore,
            )
        };
        for op in OPS {
            let table =
                measure(op.name, &[64]).unwrap_or_else(|error| panic!("{}: {error}", op.name));
            let [row] = &table.rows[..] else {
                panic!("{table:?}")
            };
            assert!(
                row.baseline_s.median > 0.0
                    && row.resident.is_some()
                    && row.with_copies.is_some()
                    && row.refused.is_none(),
                "{table:?}"
            );
        }
        assert!(
            measure("sinn", &[64])
                .expect_err("unknown")
                .to_string()
                .starts_with("operation \"sinn\" is unknown; known: ")
        );
        assert!(measure("add", &[]).is_err());
    }
}
