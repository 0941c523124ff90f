//! Choices from made-up calibrations: no clock is read.

use std::time::Duration;

use super::{Calibration, CalibrationCache, Rates, choose, choose_by_trial, choose_fixed, predict};
use crate::device::{Api, Device, DeviceInfo, DeviceKind};
use crate::dtype::DType;
use crate::error::Error;
use crate::operation::product::gemm::{GemmEpilogue, Matrix};
use crate::plan::{PlanBuilder, PlanWork};

fn device(id: &str, kind: DeviceKind) -> DeviceInfo {
    let cpu = Device::list().swap_remove(0);
    let software = matches!(kind, DeviceKind::Software | DeviceKind::Null);
    let api = if kind == DeviceKind::Cpu {
        Api::Cpu
    } else {
        Api::Vulkan
    };
    DeviceInfo {
        id: id.into(),
        kind,
        software,
        api,
        compute_units: Some(16),
        memory_bytes: Some(1 << 34),
        ..cpu
    }
}

/// A processor of sixteen cores.
fn cpu() -> Calibration {
    let rates = Rates {
        run_s: 1e-7,
        launch_s: 1e-7,
        transfer_s: 0.0,
        upload_bytes_per_s: None,
        download_bytes_per_s: None,
        memory_bytes_per_s: 50e9,
        cached_bytes_per_s: 200e9,
        flop_per_s: 1e12,
        lane_flop_per_s: 80e9,
    };
    Calibration {
        device: device("cpu", DeviceKind::Cpu),
        rates,
    }
}

/// A large graphics card behind a bus.
fn gpu(id: &str) -> Calibration {
    let rates = Rates {
        run_s: 40e-6,
        launch_s: 3e-6,
        transfer_s: 10e-6,
        upload_bytes_per_s: Some(20e9),
        download_bytes_per_s: Some(20e9),
        memory_bytes_per_s: 2e12,
        cached_bytes_per_s: 2e12,
        flop_per_s: 40e12,
        lane_flop_per_s: 0.5e9,
    };
    Calibration {
        device: device(id, DeviceKind::Discrete),
        rates,
    }
}

/// An adapter that claims to be faster than anything.
fn software() -> Calibration {
    let rates = Rates {
        run_s: 0.0,
        launch_s: 0.0,
        transfer_s: 0.0,
        flop_per_s: 1e18,
        lane_flop_per_s: 1e18,
        memory_bytes_per_s: 1e18,
        ..gpu("").rates
    };
    Calibration {
        device: device("vulkan:1", DeviceKind::Software),
        rates,
    }
}

fn product(side: usize) -> PlanWork {
    let mut plan = PlanBuilder::new(format!("gemm {side}"));
    let [a, b, y] = ["a", "b", "y"].map(|name| plan.state(name, DType::F32, side * side));
    plan.gemm(
        Matrix::new(a, side, side),
        Matrix::new(b, side, side),
        y,
        GemmEpilogue::default(),
    )
    .expect("fits");
    plan.finish().expect("whole").work()
}

/// A dozen small launches with an upload and a download: what a control tick looks like.
fn tick() -> PlanWork {
    let mut plan = PlanBuilder::new("tick");
    let (x, y) = (
        plan.input("x", DType::F32, 256),
        plan.output("y", DType::F32, 256),
    );
    let mut last = x;
    for _ in 0..11 {
        let next = plan.temp(DType::F32, 256);
        plan.unary("tanh", last, next).expect("fits");
        last = next;
    }
    plan.unary("neg", last, y).expect("fits");
    plan.finish().expect("whole").work()
}

#[test]
fn a_large_product_goes_to_the_card_and_a_small_tick_to_the_processor() {
    let all = [cpu(), gpu("vulkan:0"), software()];
    for (work, expected) in [
        (product(4096), "vulkan:0"),
        (product(16), "cpu"),
        (tick(), "cpu"),
    ] {
        let choice = choose(&work, &all).expect("two may be chosen");
        assert_eq!(choice.device, expected, "{choice:?}");
        assert!(choice.reason.contains("times as long"), "{}", choice.reason);
    }
}

#[test]
fn a_software_adapter_is_never_chosen_however_fast_it_says_it_is() {
    for work in [product(4096), tick()] {
        let choice = choose(&work, &[software(), cpu()]).expect("the processor");
        assert_eq!(
            (choice.device.as_str(), choice.reason.as_str()),
            ("cpu", "the only device that may be chosen")
        );
        assert_eq!(
            choice.predicted[0].refused.as_deref(),
            Some("a software adapter is never chosen")
        );
        let error = choose(&work, &[software()]).expect_err("none").to_string();
        assert!(
            error.contains("no device may be chosen: vulkan:1: a software adapter is never chosen"),
            "{error}"
        );
    }
}

#[test]
fn a_device_that_cannot_hold_or_express_a_plan_is_refused_with_the_numbers() {
    let work = product(4096);
    let mut narrow = gpu("vulkan:0");
    narrow.device.limits.max_binding_bytes = 1 << 20;
    let mut small = gpu("vulkan:1");
    small.device.memory_bytes = Some(1 << 20);
    let mut mute = gpu("vulkan:2");
    mute.device.dtypes = vec![DType::U32];
    let choice = choose(&work, &[narrow, small, mute, cpu()]).expect("the processor");
    let refusals: Vec<_> = choice
        .predicted
        .iter()
        .map(|prediction| prediction.refused.clone().unwrap_or_default())
        .collect();
    assert_eq!(choice.device, "cpu");
    assert_eq!(
        refusals[0],
        "a launch binds 67108864 bytes, at most 1048576 are possible"
    );
    assert_eq!(
        refusals[1],
        "the plan needs 201326592 bytes of memory, there are 1048576"
    );
    assert_eq!(refusals[2], "its device code has no f32");
}

#[test]
fn a_prediction_is_the_sum_that_its_formula_says() {
    let work = tick();
    // 12 launches of 256 lanes: 24 operations per element except for the last; the memory time is
    // smaller.
    let share = 256.0 * 0.5e9 / 40e12;
    let arithmetic = |flops: f64| flops / 40e12 / share;
    let memory = 2.0 * 1024.0 / 2e12 / share;
    let launches = 11.0 * arithmetic(24.0 * 256.0).max(memory) + arithmetic(256.0).max(memory);
    let expected = 40e-6 + 12.0 * 3e-6 + launches + 2.0 * (10e-6 + 1024.0 / 20e9);
    let predicted = predict(&work, &gpu("vulkan:0"));
    assert!(
        (predicted - expected).abs() < 1e-12 * expected.max(1.0),
        "{predicted} {expected}"
    );
}

#[test]
fn the_cache_gives_back_what_it_was_given_for_the_same_device_driver_and_version() {
    let (processor, card) = (cpu(), gpu("vulkan:0"));
    let mut cache = CalibrationCache::default();
    [&processor, &card, &card]
        .into_iter()
        .for_each(|calibration| cache.insert(calibration));
    let read = CalibrationCache::parse(cache.to_json().expect("plain").as_bytes(), "memory")
        .expect("its own");
    assert_eq!(read, cache);
    assert_eq!(read.rates(&card.device), Some(card.rates));
    let renewed = DeviceInfo {
        driver: "another".into(),
        ..card.device.clone()
    };
    assert_eq!(read.rates(&renewed), None);
    for (text, needle) in [
        ("", "memory: EOF while parsing a value at line 1 column 0"),
        (
            "{\n\"schema\": 1}",
            "memory: invalid type: integer `1`, expected a string at line 2 column 11",
        ),
        (
            "{\"schema\": \"tectum.calibration/9\", \"entries\": []}",
            "schema \"tectum.calibration/9\"",
        ),
    ] {
        let error = CalibrationCache::parse(text.as_bytes(), "memory")
            .expect_err(text)
            .to_string();
        assert!(error.contains(needle), "{error}");
    }
    let broken = cache
        .to_json()
        .expect("plain")
        .replace("40000000000000.0", "-1.0");
    let error = CalibrationCache::parse(broken.as_bytes(), "memory")
        .expect_err("a negative rate")
        .to_string();
    assert!(
        error.contains("entry 1 (vulkan:0 | ") && error.contains("flop_per_s is -1"),
        "{error}"
    );
    for number in 0..100 {
        cache.insert(&gpu(&format!("vulkan:{number}")));
    }
    assert!(
        cache.rates(&processor.device).is_none() && cache.rates(&gpu("vulkan:99").device).is_some()
    );
}

/// A table is bound whole; only the rows of its indices count.
#[test]
fn a_gather_counts_the_rows_that_it_reads() {
    let mut plan = PlanBuilder::new("gather");
    let (table, indices) = (
        plan.state("table", DType::F32, 30_000 * 64),
        plan.input("indices", DType::U32, 4),
    );
    let (y, faults) = (
        plan.output("y", DType::F32, 4 * 64),
        plan.output("faults", DType::U32, 1),
    );
    plan.gather(table, indices, y, faults, 64).expect("fits");
    let work = plan.finish().expect("whole").work();
    let launch = work
        .launches
        .iter()
        .find(|launch| launch.kernel == "gather_u32")
        .expect("recorded");
    // Rows, indices and the number of faults, which is changed in place; rows are written too.
    assert_eq!(
        (launch.read_bytes, launch.bytes),
        (1024.0 + 16.0 + 4.0, 2.0 * 1024.0 + 16.0 + 8.0)
    );
    assert_eq!(launch.flops, launch.bytes / 4.0);
    assert_eq!(
        work.longest_binding_bytes,
        30_000 * 64 * 4,
        "a device must bind all of it"
    );
}

#[test]
fn fixed_thresholds_send_large_products_to_a_gpu() {
    let infos = || {
        vec![
            device("cpu", DeviceKind::Cpu),
            device("vulkan:1", DeviceKind::Software),
            device("vulkan:0", DeviceKind::Discrete),
        ]
    };
    let fused = |side: usize| {
        let mut plan = PlanBuilder::new(format!("linear {side}"));
        let [a, b, y] = ["a", "b", "y"].map(|name| plan.state(name, DType::F32, side * side));
        let bias = plan.state("bias", DType::F32, side);
        let tail = GemmEpilogue {
            bias: Some(bias),
            ..GemmEpilogue::default()
        };
        plan.gemm(
            Matrix::new(a, side, side),
            Matrix::new(b, side, side),
            y,
            tail,
        )
        .expect("fits");
        plan.finish().expect("whole").work()
    };
    // 2·15² = 450 and 2·16² = 512 elements; with a bias 2·22² + 22 = 990 and 2·23² + 23 = 1,081.
    let cases = [
        (product(15), "cpu"),
        (product(16), "vulkan:0"),
        (fused(16), "cpu"),
        (fused(22), "cpu"),
        (fused(23), "vulkan:0"),
    ];
    for (work, wanted) in cases {
        let choice = choose_fixed(&work, infos()).expect("some device");
        assert_eq!(choice.device, wanted, "{}: {}", work.plan, choice.reason);
    }
    let choice =
        choose_fixed(&product(64), infos().into_iter().take(2).collect()).expect("the CPU");
    assert_eq!(
        (choice.device.as_str(), choice.reason.as_str()),
        (
            "cpu",
            "fixed thresholds: gemm_f32 requires a GPU, and none may be chosen"
        )
    );
}

#[test]
fn work_of_unknown_amount_goes_where_its_trial_took_least() {
    let infos = || {
        vec![
            cpu().device,
            gpu("cuda:0").device,
            gpu("vulkan:0").device,
            software().device,
        ]
    };
    let choose = |milliseconds: [Option<u64>; 3]| {
        let mut tried = Vec::new();
        let choice = choose_by_trial("genome", infos(), &mut |id| {
            tried.push(id.to_owned());
            let index = ["cpu", "cuda:0", "vulkan:0"]
                .iter()
                .position(|known| *known == id)
                .expect("a device that may be chosen");
            milliseconds[index]
                .map(Duration::from_millis)
                .ok_or_else(|| Error::unsupported("no room"))
        });
        assert_eq!(tried, ["cpu", "cuda:0", "vulkan:0"]);
        choice
    };
    let choice = choose([Some(8), Some(2), Some(4)]).expect("a choice");
    assert_eq!(
        (choice.device.as_str(), choice.reason.as_str()),
        (
            "cuda:0",
            "least measured time; vulkan:0 would take 2.00 times as long"
        )
    );
    let choice = choose([Some(8), None, Some(9)]).expect("a choice");
    assert_eq!(
        (
            choice.device.as_str(),
            choice.predicted[1].refused.as_deref()
        ),
        ("cpu", Some("its trial failed: no room"))
    );
    assert_eq!(
        choice.predicted[3].refused.as_deref(),
        Some("a software adapter is never chosen")
    );
    assert!(choose([None; 3]).is_err());
    let alone = choose_by_trial("genome", vec![cpu().device, software().device], &mut |_| {
        panic!("one device: nothing to measure")
    });
    assert_eq!(
        alone.expect("a choice").reason,
        "the only device that may be chosen"
    );
}
