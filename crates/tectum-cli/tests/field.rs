//! `tectum check field` and the field as a brain.

use std::process::{Command, Output, Stdio};

fn tectum(line: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tectum"));
    command.env("NODEVICE_SELECT", "1").args(line.split_whitespace()).stdin(Stdio::null());
    command.output().expect("it starts")
}

fn text(line: &str) -> String {
    let output = tectum(line);
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn a_check_of_the_field_lists_passes_transfers_and_agreement() {
    let has_vulkan = tectum::Device::open("vulkan:0").is_ok();
    for (device, transfers) in [("cpu", "0 up (0 B), 0 down (0 B)"), ("vulkan:0", "1 up (1280 B), 1 down (")] {
        if device == "vulkan:0" && !has_vulkan {
            eprintln!("skipped: no Vulkan device");
            continue;
        }
        let shown = text(&format!("check field --cells 8 --channels 32 --patterns 16 --cycles 2 --device {device}"));
        for part in ["field_similarity", "field_recall", "field_sense", "field_place", "field_evolve", "field_pool", "field_act", "2 cycles compared", "against float64", transfers] {
            assert!(shown.contains(part), "{device}: {part:?} is not in\n{shown}");
        }
    }
}

#[test]
fn a_field_that_there_is_not_is_refused() {
    let output = tectum("check field --cells 10");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("an axis of 10 cells"));
}

#[test]
fn a_check_of_learning_shows_four_controllers_and_their_curves() {
    let shown = text("check field --learning --cells 4 --channels 32 --patterns 8 --seeds 2 --steps 50");
    for part in ["field, learning", "field, not learning", "random", "hand-written", "2 seeds of 50 steps", "over not learning", "±"] {
        assert!(shown.contains(part), "{part:?} is not in\n{shown}");
    }
}

#[test]
fn a_run_of_a_field_leaves_pictures_of_its_slices() {
    let folder = std::env::temp_dir().join(format!("tectum-field-slices-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    let runs = folder.join("runs");
    text(&format!("run seeker --seconds 1 --quiet --runs {}", runs.display()));
    let run = std::fs::read_dir(&runs).expect("runs").next().expect("one").expect("readable").path();
    for slice in ["xy", "xz", "yz"] {
        let picture = std::fs::read(run.join(format!("field_{slice}.png"))).expect("a picture");
        assert!(picture.starts_with(b"\x89PNG\r\n") && picture.len() > 1000, "{slice}: {} bytes", picture.len());
    }
    std::fs::remove_dir_all(&folder).expect("ours");
}
