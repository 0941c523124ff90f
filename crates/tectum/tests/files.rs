//! Files have either their old or their new contents: for other threads, after a failure, a kill or
//! a power loss.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use tectum::route::{Calibration, CalibrationCache, Rates};
use tectum::{Device, file};

use crate::power_loss::{Place, each_failure, each_step};

/// A cache of this many devices; the length differs for each count.
fn calibrations(devices: usize) -> CalibrationCache {
    let mut cache = CalibrationCache::default();
    for number in 0..devices {
        let mut device = Device::open("cpu").expect("always there").info().clone();
        device.name = format!("device {number}");
        let rates = Rates {
            run_s: 1e-6,
            launch_s: 1e-6,
            transfer_s: 0.0,
            upload_bytes_per_s: None,
            download_bytes_per_s: None,
            memory_bytes_per_s: 1e10,
            cached_bytes_per_s: 1e11,
            flop_per_s: 1e11,
            lane_flop_per_s: 1e10,
        };
        cache.insert(&Calibration { device, rates });
    }
    cache
}

#[test]
fn defect_18_every_load_of_the_calibration_cache_with_concurrent_savers_is_whole() {
    let place = Place::new("calibration");
    let path = place.0.join("calibration.json");
    let caches: Vec<CalibrationCache> = (1..=8).map(|devices| calibrations(7 * devices)).collect();
    caches[0].save(&path).expect("writable");
    std::thread::scope(|scope| {
        for cache in &caches {
            let (path, caches) = (&path, &caches);
            scope.spawn(move || {
                for _ in 0..40 {
                    cache.save(path).expect("its partial file is its own");
                    let loaded = CalibrationCache::load(path).expect("whole");
                    assert!(caches.contains(&loaded), "a mixture of two");
                }
            });
        }
    });
    assert_eq!(place.names(), ["calibration.json"], "no other file is left");
}

#[test]
fn a_crash_at_any_step_leaves_the_old_file_or_the_new_one() {
    let place = Place::new("steps");
    let path = place.0.join("cache.json");
    let (old, new) = (calibrations(3), calibrations(5));
    old.save(&path).expect("writable");
    let expected = [old, new.clone()];
    let (saved, steps) = each_step(
        &place.0,
        || new.save(&path),
        move |step, folder| {
            let found = CalibrationCache::load(&folder.join("cache.json"))
                .unwrap_or_else(|error| panic!("step {step}: {error}"));
            assert!(expected.contains(&found), "step {step}");
        },
    );
    saved.expect("writable");
    assert!(
        steps >= 5,
        "created, written, synced, renamed, folder synced"
    );
    assert!(CalibrationCache::load(&path).expect("whole") == new);
}

/// A record of a benchmark takes the first free name, and existing files are unchanged.
#[test]
fn a_new_file_replaces_none() {
    let place = Place::new("new");
    let path = place.0.join("record.json");
    assert!(file::write_new(&path, b"first").expect("writable"));
    assert!(!file::write_new(&path, b"second").expect("writable"));
    let partial = file::PartialFile::create(&path).expect("writable");
    assert!(
        !partial.commit_new().expect("writable"),
        "not in a race either"
    );
    assert_eq!(std::fs::read(&path).expect("there"), b"first");
    assert_eq!(place.names(), ["record.json"]);
}

#[test]
fn a_failure_at_any_step_leaves_no_partial_file() {
    let place = Place::new("failures");
    let path = place.0.join("file.bin");
    file::write(&path, b"old").expect("writable");
    each_failure(
        || file::write(&path, b"new"),
        |step| {
            let found = std::fs::read(&path).expect("there");
            assert!(
                found == b"old" || found == b"new" && step > 3,
                "step {step}: {found:?}"
            );
            assert_eq!(place.names(), ["file.bin"], "step {step}");
        },
    );
    assert_eq!(std::fs::read(&path).expect("there"), b"new");
    let missing =
        file::write(&place.0.join("nowhere/file.bin"), b"new").expect_err("no such folder");
    assert!(
        missing.to_string().contains("nowhere/file.bin") || cfg!(windows),
        "{missing}"
    );
    file::write(&place.0, b"new").expect_err("a folder");
    assert_eq!(place.names(), ["file.bin"]);
}

#[cfg(unix)]
#[test]
fn a_link_and_a_named_pipe_stay_and_receive_the_bytes() {
    use std::os::unix::fs::FileTypeExt as _;
    let place = Place::new("special");
    let [file, link, pipe] = ["file", "link", "pipe"].map(|name| place.0.join(name));
    std::fs::write(&file, b"old").expect("writable");
    std::os::unix::fs::symlink("file", &link).expect("links");
    file::write(&link, b"new").expect("writable");
    assert!(link.is_symlink());
    assert_eq!(std::fs::read(&file).expect("there"), b"new");
    let made = Command::new("mkfifo").arg(&pipe).status();
    assert!(made.expect("installed").success());
    let reader = std::thread::spawn({
        let pipe = pipe.clone();
        move || std::fs::read(pipe)
    });
    file::write(&pipe, b"through").expect("a reader waits");
    assert_eq!(
        reader.join().expect("no panic").expect("readable"),
        b"through"
    );
    assert!(pipe.metadata().expect("there").file_type().is_fifo());
    assert!(!file::write_new(&pipe, b"again").expect("it exists"));
    let partial = file::PartialFile::create(&pipe).expect("writable");
    assert!(!partial.commit_new().expect("it exists"));
    assert_eq!(place.names().len(), 3, "no other file is left");
}

#[cfg(unix)]
#[test]
fn a_file_has_the_permissions_of_any_new_file() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = Place::new("mode");
    let [ours, plain] = ["ours", "plain"].map(|name| place.0.join(name));
    file::write(&ours, b"1").expect("writable");
    std::fs::write(&plain, b"1").expect("writable");
    let mode = |path: &Path| std::fs::metadata(path).expect("there").permissions().mode();
    assert_eq!(mode(&ours), mode(&plain));
}

/// Names the file that the child writes forever.
const CHILD: &str = "TECTUM_TEST_WRITE_FOR_EVER";

#[test]
fn a_process_killed_while_it_writes_leaves_a_whole_file() {
    if let Some(path) = std::env::var_os(CHILD) {
        for round in 0u8.. {
            file::write(
                Path::new(&path),
                &vec![round; 100_000 + 1000 * usize::from(round)],
            )
            .expect("writable");
            if round == u8::MAX {
                return;
            }
        }
    }
    let place = Place::new("killed");
    let path = place.0.join("file.bin");
    for kill in 0..20 {
        let test = "files::a_process_killed_while_it_writes_leaves_a_whole_file";
        let mut child = Command::new(std::env::current_exe().expect("this program"));
        let mut child = child
            .args([test, "--exact", "--test-threads=1"])
            .env(CHILD, &path)
            .stdout(std::process::Stdio::null())
            .spawn()
            .expect("starts");
        while !path.exists() {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_micros(7919 * kill % 20_000));
        child.kill().expect("it can be killed");
        child.wait().expect("it ends");
        let bytes = std::fs::read(&path).expect("there");
        let round = bytes[0];
        assert!(
            bytes.len() == 100_000 + 1000 * usize::from(round)
                && bytes.iter().all(|byte| *byte == round),
            "kill {kill}"
        );
    }
}
