//! Memory over many ticks and plans. One test in its own process: other tests would affect its
//! numbers.

use tectum::{DType, Device, Error, Plan, PlanBuilder, View};

/// A plan that adds its input to a state, through a temporary.
fn counting_plan() -> Result<(Plan, View, View), Error> {
    let mut plan = PlanBuilder::new("count");
    let (one, state) = (
        plan.input("one", DType::F32, 1000),
        plan.state("sum", DType::F32, 1000),
    );
    let (sum, out) = (
        plan.temp(DType::F32, 1000),
        plan.output("out", DType::F32, 1000),
    );
    plan.binary("add", state, one, sum)?;
    plan.copy(sum, state)?;
    plan.copy(sum, out)?;
    Ok((plan.finish()?, one, out))
}

/// Memory in use and in the pool must not grow from tick to tick, nor from plan to plan.
#[test]
fn memory_does_not_grow_over_ticks_or_plans() -> Result<(), Error> {
    for (id, ticks) in [
        ("null", 100_000),
        ("cpu", 100_000),
        ("vulkan:0", 5_000),
        ("cuda:0", 5_000),
    ] {
        let Some(device) = Device::open_if_present(id).expect("absent or usable") else {
            println!("skipped: {id} is absent: memory over ticks");
            continue;
        };
        let (plan, one, out) = counting_plan()?;
        let mut run = plan.compile(&device)?;
        let before = device.pool().stats();
        let resident = resident_bytes();
        for _ in 0..ticks {
            run.input::<f32>(one).fill(1.0);
            run.run()?;
        }
        if id != "null" {
            assert_eq!(run.output::<f32>(out)[999], ticks as f32, "{id}");
        }
        let after = device.pool().stats();
        assert_eq!(
            (before.misses, before.hits),
            (after.misses, after.hits),
            "{id}: a tick allocates nothing"
        );
        if let (Some(before), Some(after)) = (resident, resident_bytes()) {
            // A leak of one closure per tick would exceed this after 100,000 ticks, one of a buffer
            // after 5,000.
            assert!(
                after < before + (8 << 20),
                "{id}: {before} → {after} bytes resident"
            );
        }
        drop(run);
        let live = device.pool().stats().live_count;
        for _ in 0..20 {
            drop(plan.compile(&device)?);
        }
        assert_eq!(
            device.pool().stats().live_count,
            live,
            "{id}: dropped plans give everything back"
        );
    }
    Ok(())
}

/// Resident memory of this process, if the system reports it.
fn resident_bytes() -> Option<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    statm
        .split_whitespace()
        .nth(1)?
        .parse::<u64>()
        .ok()
        .map(|pages| pages * 4096)
}
