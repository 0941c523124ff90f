//! Predicted times compared with times measured on the processor.

use std::time::Instant;

use tectum::route::{self, Target, calibrate, predict};
use tectum::{DType, Device, Error, GemmEpilogue, Matrix, Plan, PlanBuilder};

fn product(side: usize) -> Result<Plan, Error> {
    let mut plan = PlanBuilder::new(format!("gemm {side}"));
    let [a, b, y] = ["a", "b", "y"].map(|name| plan.state(name, DType::F32, side * side));
    plan.gemm(
        Matrix::new(a, side, side),
        Matrix::new(b, side, side),
        y,
        GemmEpilogue::default(),
    )?;
    plan.finish()
}

fn sums(len: usize, launches: usize) -> Result<Plan, Error> {
    let mut plan = PlanBuilder::new(format!("add {len} times {launches}"));
    let [a, b, y] = ["a", "b", "y"].map(|name| plan.state(name, DType::F32, len));
    for _ in 0..launches {
        plan.binary("add", a, b, y)?;
    }
    plan.finish()
}

fn median_s(plan: &Plan, device: &Device) -> Result<f64, Error> {
    let mut run = plan.compile(device)?;
    run.run()?;
    let mut times = Vec::new();
    let start = Instant::now();
    while times.len() < 5 || (times.len() < 2000 && start.elapsed().as_secs_f64() < 0.05) {
        let start = Instant::now();
        run.run()?;
        times.push(start.elapsed().as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    Ok(times[times.len() / 2])
}

/// Prediction and measurement come from the same machine within seconds of each other, so their
/// ratio shows whether the model is accurate. The time of one plan depends on caches, which the
/// model ignores, and on other load of the machine: the median of the ratios is bounded, and the
/// order.
#[test]
fn predictions_on_the_cpu_are_of_the_size_of_what_is_measured_and_in_its_order() -> Result<(), Error>
{
    const MEDIAN: f64 = 4.0;
    const APART: f64 = 12.0;
    let device = Device::open("cpu")?;
    let calibration = calibrate(&device)?;
    let plans = [
        sums(1 << 10, 1)?,
        sums(1 << 10, 100)?,
        product(64)?,
        product(256)?,
        sums(1 << 20, 1)?,
        product(1024)?,
        sums(1 << 24, 1)?,
    ];
    let mut rows = Vec::new();
    for plan in &plans {
        let (predicted, measured) = (
            predict(&plan.work(), &calibration),
            median_s(plan, &device)?,
        );
        println!(
            "{}: predicted {:.1} us, measured {:.1} us",
            plan.name(),
            predicted * 1e6,
            measured * 1e6
        );
        rows.push((predicted, measured));
    }
    let mut ratios: Vec<f64> = rows
        .iter()
        .map(|(predicted, measured)| (predicted / measured).max(measured / predicted))
        .collect();
    ratios.sort_by(f64::total_cmp);
    assert!(ratios[ratios.len() / 2] < MEDIAN, "{rows:?}");
    // Plans whose measured times are far apart are predicted in that order.
    for a in &rows {
        for b in rows.iter().filter(|b| b.1 > APART * a.1) {
            assert!(b.0 > a.0, "{a:?} {b:?}");
        }
    }
    Ok(())
}

/// `Auto` is the device that the router chooses for the plan's own work, never a software adapter
/// or the null device, and computes the same.
#[test]
fn auto_compiles_for_the_device_that_is_chosen_for_the_plan() -> Result<(), Error> {
    for plan in [sums(1 << 10, 1)?, product(64)?] {
        let (chosen, choice) = route::open(&plan.work())?;
        let mut run = plan.compile(Target::Auto)?;
        assert_eq!(
            (&run.device().info().id, &choice.plan),
            (&chosen.info().id, &plan.name().to_owned())
        );
        assert!(run.device().info().executes() && !run.device().info().software);
        run.run()?;
        assert_eq!(
            plan.compile(None)?.device().info().id,
            chosen.info().id,
            "no device is `Auto`"
        );
        assert_eq!(
            plan.compile(Some(&Device::open("null")?))?
                .device()
                .info()
                .id,
            "null",
            "a device that is named is used"
        );
    }
    Ok(())
}
