//! Intervals, records and their comparison, without a clock; and one small run on the CPU.

use std::path::PathBuf;

use tectum::Measurement;

use super::*;

/// Rounds that wander by a few percent, as a machine's do.
fn rounds(seconds: f64, seed: u32) -> Vec<f64> {
    (0..9)
        .map(|round| {
            seconds
                * (1.0
                    + 0.04
                        * f64::from(random::uniform(
                            random::philox([round, seed, 0, 0], [0, 0])[0],
                        )))
        })
        .collect()
}

fn row(key: &str, seconds: f64, seed: u32) -> Row {
    let peer = PeerRow {
        peer: "numpy".into(),
        call: "numpy.add(a, b, out=y)".into(),
        rounds_s: rounds(2.0 * seconds, seed + 1),
        median_s: None,
        ratio: None,
        skipped: None,
    };
    let mut row = Row {
        key: key.into(),
        kernels: vec!["add_f32".into()],
        median_s: 0.0,
        spread: 0.0,
        repeats: 9,
        amount: 1e6,
        rate: 0.0,
        roofline: Roofline::Copy,
        threads: None,
        percent_of_roofline: 0.0,
        rounds_s: rounds(seconds, seed),
        roofline_rounds: rounds(1e10, seed + 2),
        peers: vec![peer],
    };
    row.summarize(1e10);
    row
}

fn record(seed: u32) -> BenchRecord {
    let peer = PeerBrief {
        name: "numpy".into(),
        versions: [("numpy".into(), "2".into())].into(),
        threads: Some(2),
        skipped: None,
    };
    let device = Device::open("cpu").expect("always here");
    BenchRecord {
        schema: RECORD_SCHEMA.into(),
        date: "2026-01-02".into(),
        commit: "0".into(),
        note: None,
        interrupted: None,
        suites: vec!["core".into()],
        machine: Machine::here().expect("always here"),
        device: DeviceBrief::of(&device),
        peers: vec![peer],
        measured: Measurement {
            copy_bytes_per_s: 1e10,
            upload_bytes_per_s: None,
            download_bytes_per_s: None,
            launch_s: 1e-6,
            gemm_flop_per_s: 1e11,
        },
        rows: vec![
            row("core.add.n1", 1e-3, seed),
            row("core.exp.n1", 2e-3, seed + 10),
        ],
        kernels_missed: Vec::new(),
        receipt: serde_json::Value::Null,
        runs: Vec::new(),
    }
}

/// Makes a row slower by a factor.
fn plant(record: &mut BenchRecord, row: usize, factor: f64) {
    record.rows[row]
        .rounds_s
        .iter_mut()
        .for_each(|seconds| *seconds *= factor);
    record.rows[row].summarize(1e10);
}

#[test]
fn an_interval_is_the_order_statistics_that_the_binomial_gives() {
    let to = |n: u32| (1..=n).map(f64::from).collect::<Vec<_>>();
    let ends =
        |n| Interval::of(&to(n)).map(|interval| (interval.low, interval.median, interval.high));
    // 2·P(B = 0) is 1/32 for six values; 2·P(B ≤ 1) is 0.039 for nine and 0.021 for ten.
    let expected = [
        (1, (1.0, 1.0, 1.0)),
        (5, (1.0, 3.0, 5.0)),
        (6, (1.0, 3.5, 6.0)),
        (8, (1.0, 4.5, 8.0)),
        (9, (2.0, 5.0, 8.0)),
        (10, (2.0, 5.5, 9.0)),
    ];
    for (n, expected) in expected {
        assert_eq!(ends(n), Some(expected), "{n} values");
    }
    assert_eq!(Interval::of(&[]), None);
}

#[test]
fn days_become_dates() {
    for (days, date) in [
        (0, (1970, 1, 1)),
        (11_016, (2000, 2, 29)),
        (19_723, (2024, 1, 1)),
        (20_513, (2026, 3, 1)),
    ] {
        assert_eq!(machine::civil(days), date);
    }
}

#[test]
fn two_records_of_one_build_agree() {
    for seed in 0..20 {
        let comparison =
            compare(&record(100 * seed), &record(100 * seed + 50)).expect("comparable");
        assert_eq!(
            (comparison.compared, comparison.slower, comparison.gone),
            (2, vec![], vec![]),
            "seed {seed}"
        );
    }
}

#[test]
fn a_planted_slowdown_is_found_relative_to_the_peer_and_to_the_roofline() {
    let old = record(1);
    let mut new = record(7);
    plant(&mut new, 1, 1.3);
    let found = compare(&old, &new).expect("comparable").slower;
    assert_eq!(
        found
            .iter()
            .map(|row| (row.key.as_str(), &row.basis))
            .collect::<Vec<_>>(),
        [("core.exp.n1", &Basis::Peer("numpy".into()))]
    );
    assert!(
        found[0].factor.low > 1.2 && found[0].factor.high < 1.4,
        "{:?}",
        found[0].factor
    );
    // Another version of a peer cannot be compared with.
    new.peers[0].versions.insert("numpy".into(), "3".into());
    let found = compare(&old, &new).expect("comparable").slower;
    assert_eq!(
        found
            .iter()
            .map(|row| (row.key.as_str(), &row.basis))
            .collect::<Vec<_>>(),
        [("core.exp.n1", &Basis::Roofline)]
    );
    assert_eq!(compare(&new, &old).expect("comparable").slower, []);
}

#[test]
fn a_figure_that_does_not_follow_from_its_rounds_is_found() {
    assert_eq!(record(1).discrepancy(), None);
    type Change = fn(&mut Row);
    let change: [(&str, Change); 5] = [
        ("median_s", |row| row.median_s *= 1.001),
        ("spread", |row| row.spread *= 1.001),
        ("percent_of_roofline", |row| {
            row.percent_of_roofline *= 1.001
        }),
        ("ratio of numpy", |row| {
            row.peers[0].ratio = row.peers[0].ratio.map(|ratio| Interval {
                median: ratio.median * 1.001,
                ..ratio
            })
        }),
        ("ratio's low end of numpy", |row| {
            row.peers[0].ratio = row.peers[0].ratio.map(|ratio| Interval {
                low: ratio.low * 1.001,
                ..ratio
            })
        }),
    ];
    for (what, change) in change {
        let mut changed = record(1);
        change(&mut changed.rows[1]);
        let found = changed.discrepancy().expect("found");
        assert!(
            found.starts_with(&format!("core.exp.n1: {what} is ")),
            "{found}"
        );
    }
}

#[test]
fn records_of_other_machines_and_without_common_rows_are_refused() {
    let old = record(1);
    let mut other = record(1);
    other.machine.threads += 1;
    assert!(
        compare(&old, &other)
            .expect_err("other machine")
            .to_string()
            .contains("the old record is of")
    );
    let mut renamed = record(1);
    renamed.rows.iter_mut().for_each(|row| row.key += "x");
    assert!(
        compare(&old, &renamed)
            .expect_err("no row")
            .to_string()
            .contains("no row in common")
    );
    renamed.rows.push(old.rows[0].clone());
    assert_eq!(
        compare(&old, &renamed).expect("comparable").gone,
        ["core.exp.n1"]
    );
}

#[test]
fn a_record_is_read_as_it_was_written_and_never_overwritten() {
    let folder = std::env::temp_dir().join(format!("tectum-records-{}", std::process::id()));
    let record = record(3);
    let paths: Vec<PathBuf> = (0..2)
        .map(|_| record.write(&folder).expect("writable"))
        .collect();
    let read = BenchRecord::read(&paths[1]);
    std::fs::remove_dir_all(&folder).expect("there");
    let mut read = read.expect("readable");
    // Floats are restored to within their last digit.
    for (read, written) in read.rows.iter_mut().zip(&record.rows) {
        let near = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-14 * b.abs();
        assert!(
            read.rounds_s.len() == 9 && read.rounds_s.iter().zip(&written.rounds_s).all(near),
            "{read:?}"
        );
        assert!(
            near((&read.roofline_ratio().low, &written.roofline_ratio().low)),
            "{read:?}"
        );
        assert_eq!(read.peers[0].ratio.map(|_| ()), Some(()));
        *read = written.clone();
    }
    assert_eq!(read, record);
    let names: Vec<_> = paths
        .iter()
        .filter_map(|path| path.file_name()?.to_str())
        .collect();
    assert_eq!(names, ["2026-01-02-cpu.json", "2026-01-02-cpu-2.json"]);
}

/// The watch sees a row before it is measured: broken off at the second row of the second pass, a
/// run of two rows has one pass more of the first row.
#[test]
fn an_interrupted_run_keeps_the_rounds_so_far_and_is_marked() {
    use std::ops::ControlFlow;
    let device = Device::open("cpu").expect("always here");
    let options = Options {
        rounds: 5,
        filters: vec!["core.fill.".into(), "core.copy.".into()],
        peers: PeerChoice::Named(Vec::new()),
        peer_folder: None,
        commit: "0".into(),
        note: None,
    };
    let broken_off_at = |last: u64| {
        run(&device, &suites(), &options, &mut |progress| {
            if progress.done < last {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        })
    };
    let rounds = |record: &BenchRecord| {
        record
            .rows
            .iter()
            .map(|row| row.rounds_s.len())
            .collect::<Vec<_>>()
    };
    let record = broken_off_at(3).expect("two rows are there");
    // Five rounds in three passes are 2 + 2 + 1.
    assert_eq!(
        (rounds(&record), record.interrupted),
        (vec![4, 2], Some(Planned { rows: 2, rounds: 5 }))
    );
    assert_eq!(record.discrepancy(), None);
    let first = broken_off_at(1).expect("a row is there");
    assert_eq!(rounds(&first), [2]);
    let folder = std::env::temp_dir().join(format!("tectum-incomplete-{}", std::process::id()));
    let path = first.write(&folder).expect("writable");
    let name = path.file_name().and_then(|name| name.to_str());
    assert_eq!(
        name,
        Some(format!("{}-cpu-incomplete.json", first.date).as_str())
    );
    let read = BenchRecord::read(&path).expect("a record");
    assert_eq!(read.interrupted, Some(Planned { rows: 2, rounds: 5 }));
    std::fs::remove_dir_all(&folder).expect("ours");
    let nothing = broken_off_at(0).expect_err("no row is there");
    assert_eq!(nothing.kind(), tectum::ErrorKind::Cancelled);
    assert_eq!(broken_off_at(6).expect("complete").interrupted, None);

    let sizes = |last: u64| {
        sizes("add", &device, None, &[1024, 4096], 2, &mut |progress| {
            if progress.done < last {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        })
    };
    let table = sizes(1).expect("a size is there");
    assert_eq!((table.rows.len(), table.interrupted), (1, Some(2)));
    let nothing = sizes(0).expect_err("no size is there");
    assert_eq!(nothing.kind(), tectum::ErrorKind::Cancelled);
}

#[test]
fn a_run_gives_every_row_its_rounds_and_says_which_peers_it_lacks() {
    let device = Device::open("cpu").expect("always here");
    let options = Options {
        rounds: 4,
        filters: vec![
            "core.fill.".into(),
            "core.gemm.".into(),
            "programs.dispatch.".into(),
            "programs.vector_add.".into(),
        ],
        peers: PeerChoice::Named(vec!["numpy".into()]),
        peer_folder: None,
        commit: "0".into(),
        note: None,
    };
    let record = run(
        &device,
        &suites(),
        &options,
        &mut tectum::WorkProgress::ignore,
    )
    .expect("runs");
    assert!(record.rows.len() > 3 && record.kernels_missed.is_empty());
    for row in &record.rows {
        assert_eq!(
            (row.rounds_s.len(), row.roofline_rounds.len()),
            (4, 4),
            "{}",
            row.key
        );
        assert!(
            row.repeats >= 4 && row.rate > 0.0 && row.percent_of_roofline > 0.0,
            "{}",
            row.key
        );
    }
    let add = record
        .rows
        .iter()
        .find(|row| predecessor_seconds(&row.key).is_some())
        .expect("the predecessor's row");
    assert_eq!(
        (add.key.as_str(), add.kernels.as_slice()),
        (
            "programs.vector_add.n65536",
            &["program_vector_add".to_owned()][..]
        )
    );
    assert!(
        record.peers[0]
            .skipped
            .as_ref()
            .is_some_and(|reason| reason.contains("--peer-dir")),
        "{:?}",
        record.peers
    );
    let nothing = Options {
        filters: vec!["no such row".into()],
        ..options
    };
    assert!(
        run(
            &device,
            &suites(),
            &nothing,
            &mut tectum::WorkProgress::ignore
        )
        .expect_err("no row")
        .to_string()
        .contains("no row's key contains no such row")
    );
}

#[test]
fn a_speedup_is_the_baselines_time_over_the_devices() {
    let (mut device, mut baseline) = (record(1), record(2));
    device.device.id = "cuda:0".into();
    device.rows.push(row("infer.x", 1e-3, 3));
    device.rows.push(row("core.alone.n1", 1e-3, 4));
    // Rows for each number of threads: the maximum counts.
    baseline.rows.extend([
        row("infer.x.t1", 8e-3, 5),
        row("infer.x.t16", 2e-3, 6),
        row("infer.x.t2", 4e-3, 7),
        row("infer.xx", 1.0, 8),
    ]);
    plant(&mut baseline, 0, 10.0);
    let found = speedups(&device, &baseline).expect("rows in common");
    let ratios: Vec<(&str, &str)> = found
        .rows
        .iter()
        .map(|row| (row.key.as_str(), row.baseline_key.as_str()))
        .collect();
    assert_eq!(
        ratios,
        [
            ("core.add.n1", "core.add.n1"),
            ("core.exp.n1", "core.exp.n1"),
            ("infer.x", "infer.x.t16")
        ]
    );
    for (row, expected) in found.rows.iter().zip([10.0, 1.0, 2.0]) {
        assert!(
            (row.ratio.median / expected - 1.0).abs() < 0.05
                && row.ratio.low <= row.ratio.median
                && row.ratio.median <= row.ratio.high,
            "{row:?}"
        );
    }
    assert_eq!(
        (found.alone, found.baseline.id.as_str()),
        (vec!["core.alone.n1".to_owned()], "cpu")
    );
    baseline.rows.clear();
    assert!(
        speedups(&device, &baseline)
            .expect_err("nothing in common")
            .to_string()
            .contains("no row in common")
    );
}
