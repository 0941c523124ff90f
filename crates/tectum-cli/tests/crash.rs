//! Every file of a command is either the old one or the complete new one, at any point where the
//! command is killed: SIGKILL at each of its writes, syncs and renames, injected by `strace`.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The previous contents of every file.
const OLD: &[u8] = b"old";
/// The calls at which a file's content or name changes. Newer architectures have no `rename`.
const CALLS: [&str; 3] = [
    "write",
    "fsync",
    if cfg!(target_arch = "x86_64") {
        "rename"
    } else {
        "renameat"
    },
];

/// A folder that is deleted at the end.
struct Place(PathBuf);

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Place {
    fn new() -> Self {
        let folder = std::env::temp_dir().join(format!("tectum-crash-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(folder.join("plots")).expect("a folder");
        Self(folder)
    }

    /// Runs a command under `strace` with such options.
    fn traced(&self, options: &[&str], line: &str) -> Output {
        let mut command = Command::new("strace");
        command
            .args(["-f", "-qq", "-o", "trace.log"])
            .args(options)
            .arg(env!("CARGO_BIN_EXE_tectum"))
            .args(line.split_whitespace());
        // No driver is opened: its own writes are not of interest.
        command
            .current_dir(&self.0)
            .env("VK_DRIVER_FILES", "/nonexistent")
            .env("VK_ICD_FILENAMES", "/nonexistent")
            .stdin(Stdio::null());
        command.output().expect("strace starts")
    }

    fn read(&self, file: &str) -> Vec<u8> {
        std::fs::read(self.0.join(file)).expect("there")
    }

    /// Puts the old files back and removes what a killed command left.
    fn restore(&self, files: &[&str]) {
        for folder in [self.0.clone(), self.0.join("plots")] {
            let entries = std::fs::read_dir(folder)
                .expect("there")
                .map(|entry| entry.expect("readable").path());
            entries
                .filter(|path| path.to_string_lossy().contains(".partial"))
                .for_each(|path| std::fs::remove_file(path).expect("there"));
        }
        files
            .iter()
            .for_each(|file| std::fs::write(self.0.join(file), OLD).expect("writable"));
    }
}

fn has_strace() -> bool {
    let found = Command::new("strace")
        .args(["-o", "/dev/null", "true"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    found.is_ok_and(|status| status.success())
}

/// A receipt contains times, so no two are equal: it is complete if it can be read. Other files are
/// the same in every run.
fn is_whole(file: &str, bytes: &[u8], new: &[u8]) -> bool {
    match Path::new(file)
        .extension()
        .is_some_and(|ending| ending == "json")
    {
        true => serde_json::from_slice::<serde_json::Value>(bytes)
            .is_ok_and(|receipt| receipt["schema"] == "tectum.receipt/3"),
        false => bytes == new,
    }
}

/// Kills a command at each call that changes a file; returns the number of kills.
fn kill_everywhere(place: &Place, line: &str, files: &[&str]) -> usize {
    place.restore(files);
    let whole = place.traced(&["-e", &format!("trace={}", CALLS.join(","))], line);
    assert!(
        whole.status.success(),
        "{line}: {}",
        String::from_utf8_lossy(&whole.stderr)
    );
    let trace = String::from_utf8(place.read("trace.log")).expect("text");
    let made: Vec<Vec<u8>> = files.iter().map(|file| place.read(file)).collect();
    files.iter().zip(&made).for_each(|(file, made)| {
        assert!(made != OLD && is_whole(file, made, made), "{line}: {file}")
    });
    let mut kills = 0;
    let mut was_old = false;
    for call in CALLS {
        let count = trace
            .lines()
            .filter(|line| line.contains(&format!(" {call}(")))
            .count();
        assert!(count >= files.len(), "{line}: {count} of {call}");
        for when in 1..=count {
            place.restore(files);
            let killed = place.traced(
                &[
                    "-e",
                    &format!("trace={call}"),
                    "-e",
                    &format!("inject={call}:signal=SIGKILL:when={when}"),
                ],
                line,
            );
            assert!(
                !killed.status.success(),
                "{line}: {call} {when} was not reached"
            );
            for (file, new) in files.iter().zip(&made) {
                let found = place.read(file);
                was_old |= found == OLD;
                assert!(
                    found == OLD || is_whole(file, &found, new),
                    "{line}: killed at {call} {when}: {file} is torn, {} bytes",
                    found.len()
                );
            }
            kills += 1;
        }
    }
    assert!(was_old, "{line}: no kill came before a rename");
    // Files of a killed command do not prevent the next from working.
    assert!(
        place.traced(&["-e", "trace=none"], line).status.success(),
        "{line}: after a kill"
    );
    kills
}

#[test]
fn a_killed_command_leaves_old_files_or_new_ones() {
    if !has_strace() {
        return println!("skipped: strace is absent or may not trace");
    }
    let place = Place::new();
    std::fs::write(
        place.0.join("tiny.json"),
        include_str!("../../tectum-spiking/samples/sample-genome.json"),
    )
    .expect("writable");
    std::fs::write(
        place.0.join("one.atlas"),
        "buffer y: u32 write\nmov_imm.u32 r0, 1\nstg.u32 [y], r0",
    )
    .expect("writable");
    super::train::record(&place.0.join("rig.csv"), 5000);
    let genome = "run tiny.json --bursts 40 --device cpu --record broken.mcap --snapshot state.safetensors --plot plots --receipt receipt.json";
    let mut kills = kill_everywhere(
        &place,
        genome,
        &[
            "broken.mcap",
            "state.safetensors",
            "plots/raster.png",
            "plots/raster.svg",
            "plots/rates.png",
            "receipt.json",
        ],
    );
    let recorded = place.read("broken.mcap");
    std::fs::write(
        place.0.join("broken.mcap"),
        &recorded[..recorded.len() - 20],
    )
    .expect("writable");
    for (line, files) in [
        (
            "run one.atlas --size y=64 --device cpu --out y=y.npy --receipt receipt.json",
            &["y.npy", "receipt.json"][..],
        ),
        (
            "train twin rig.csv -o twin.safetensors --members 1 --steps 2 --device cpu --receipt receipt.json",
            &["twin.safetensors", "receipt.json"],
        ),
        ("recover broken.mcap whole.mcap", &["whole.mcap"]),
    ] {
        kills += kill_everywhere(&place, line, files);
    }
    println!("{kills} kills");
}
