//! The walk of `docs/robots.md`: one policy on a scene of MuJoCo and on a body in another process,
//! every command of the page.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tectum_control::recording::Trace;
use tectum_control::run_folder::TRACE_FILE;

const HEADING: &str = "## One policy on a simulator and on a robot\n";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// An interpreter with what the body of the page needs.
fn python() -> Option<PathBuf> {
    let own = root().join(".venv/bin/python3");
    let named = std::env::var_os("TECTUM_PYTHON").map_or(own, PathBuf::from);
    let python = if named.is_file() {
        named
    } else {
        "python3".into()
    };
    let output = Command::new(&python)
        .args(["-c", "import mujoco, numpy, websockets"])
        .output();
    output
        .is_ok_and(|output| output.status.success())
        .then_some(python)
}

/// A block of the page: its language, the paragraph before it, and its lines.
struct Block {
    language: String,
    before: String,
    text: String,
}

fn blocks(section: &str) -> Vec<Block> {
    let parts: Vec<&str> = section.split("```").collect();
    let pairs = parts.chunks_exact(2);
    pairs
        .map(|pair| {
            let (language, text) = pair[1].split_once('\n').expect("a language");
            let paragraph = pair[0].trim_end().rsplit("\n\n").next();
            Block {
                language: language.to_owned(),
                before: paragraph.unwrap_or_default().to_owned(),
                text: text.to_owned(),
            }
        })
        .collect()
}

/// A process of the page, until the walk ends.
struct Peer(Child);

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn one_contract_drives_a_scene_and_a_body_in_another_process() {
    let Some(python) = python() else {
        println!("skipped: python with mujoco and websockets: the walk of docs/robots.md");
        return;
    };
    let page = std::fs::read_to_string(root().join("docs/robots.md")).expect("the page");
    let section = page.split(HEADING).nth(1).expect("the walk");
    let section = section.split("\n## ").next().expect("its text");
    let place = tempfile::tempdir().expect("writable");
    let (mut peers, mut commands) = (Vec::new(), 0);
    let mut port: Option<String> = None;
    for block in blocks(section) {
        if block.language == "toml" {
            let name = block.before.split('`').nth(1).expect("the name of a file");
            let text = match &port {
                Some(port) => block.text.replace("9000", port.as_str()),
                None => block.text,
            };
            std::fs::write(place.path().join(name), text).expect("writable");
            continue;
        }
        for line in block.text.lines() {
            commands += 1;
            let words: Vec<&str> = line.split_whitespace().collect();
            if words[0] == "python3" {
                let mut child = Command::new(&python)
                    .current_dir(place.path())
                    .arg(root().join(words[1]))
                    // Any free port.
                    .args(&words[2..words.len() - 1])
                    .arg("0")
                    .stdout(Stdio::piped())
                    .spawn()
                    .expect("an interpreter");
                let output = child.stdout.take().expect("piped");
                peers.push(Peer(child));
                let mut line = String::new();
                BufReader::new(output)
                    .read_line(&mut line)
                    .expect("an address");
                port = line.trim().rsplit(':').next().map(str::to_owned);
                continue;
            }
            assert_eq!(words[0], "tectum", "{line}");
            let output = Command::new(env!("CARGO_BIN_EXE_tectum"))
                .current_dir(place.path())
                .env("TECTUM_PYTHON", &python)
                .args(&words[1..])
                .output()
                .expect("the command");
            let errors = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{line}: {errors}");
        }
    }
    assert_eq!((commands, peers.len()), (5, 1));
    let trace = |run: &str| {
        let trace = Trace::read(&place.path().join("runs").join(run).join(TRACE_FILE));
        let ticks = trace.expect("written").ticks;
        let numbers = |tick: tectum_control::recording::TraceTick| {
            let numbers = tick.observation.into_iter().chain(tick.action);
            numbers.map(f64::to_bits).collect::<Vec<_>>()
        };
        ticks.into_iter().map(numbers).collect::<Vec<_>>()
    };
    let (scene, robot) = (trace("1"), trace("2"));
    assert_eq!(scene.len(), 100);
    assert_eq!(scene, robot);
    // The policy moves the joints.
    assert!(scene.windows(2).any(|pair| pair[0] != pair[1]));
}
