//! `cargo xtask peers [NAME…]`: the environments that the peers of `tectum bench` run in.

use std::path::Path;
use std::process::Command;

/// Makes `bench/peers/.venv-NAME` for each name, or for every peer that has requirements; an
/// up-to-date one is kept.
pub fn run(root: &Path, names: &[String]) -> Result<(), String> {
    let folder = root.join("bench/peers");
    let known = known(&folder)?;
    if let Some(name) = names.iter().find(|name| !known.contains(name)) {
        return Err(format!(
            "peers: {name} is unknown; known: {}",
            known.join(", ")
        ));
    }
    let wanted = if names.is_empty() { &known } else { names };
    wanted
        .iter()
        .try_for_each(|name| environment(&folder, name))
}

/// Faults of the folder: a script without requirements or requirements without a script.
pub fn faults(root: &Path) -> Result<Vec<String>, String> {
    let folder = root.join("bench/peers");
    let lacks = |name: &String| {
        (!folder.join(format!("{name}_rows.py")).exists())
            .then(|| format!("bench/peers/{name}.txt: no {name}_rows.py next to it"))
    };
    let mut faults: Vec<String> = known(&folder)?.iter().filter_map(lacks).collect();
    for file in files(&folder)? {
        if let Some(name) = file
            .strip_suffix("_rows.py")
            .filter(|name| !folder.join(format!("{name}.txt")).exists())
        {
            faults.push(format!("bench/peers/{file}: no {name}.txt next to it"));
        }
    }
    Ok(faults)
}

fn files(folder: &Path) -> Result<Vec<String>, String> {
    let entries = std::fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    names.sort();
    Ok(names)
}

/// The peers with requirements.
fn known(folder: &Path) -> Result<Vec<String>, String> {
    Ok(files(folder)?
        .iter()
        .filter_map(|file| file.strip_suffix(".txt").map(str::to_owned))
        .collect())
}

fn environment(folder: &Path, name: &str) -> Result<(), String> {
    let requirements = folder.join(format!("{name}.txt"));
    let place = folder.join(format!(".venv-{name}"));
    // Written last, so that an environment with it is complete.
    let stamp = place.join("installed.txt");
    let wanted =
        std::fs::read(&requirements).map_err(|e| format!("{}: {e}", requirements.display()))?;
    if std::fs::read(&stamp).is_ok_and(|installed| installed == wanted) {
        println!("peer {name}: up to date");
        return program(&folder.join(name), &place, name);
    }
    println!("peer {name}: installing");
    let python = if cfg!(windows) { "python" } else { "python3" };
    step(
        name,
        Command::new(python)
            .args(["-m", "venv", "--clear"])
            .arg(&place),
    )?;
    let installed = place.join(if cfg!(windows) {
        "Scripts/python.exe"
    } else {
        "bin/python"
    });
    step(
        name,
        Command::new(installed)
            .args(["-m", "pip", "install", "--quiet", "--requirement"])
            .arg(&requirements),
    )?;
    std::fs::write(&stamp, wanted).map_err(|e| format!("{}: {e}", stamp.display()))?;
    program(&folder.join(name), &place, name)
}

/// Builds the Rust program of a peer that has one, for this machine's instructions, into its
/// environment.
fn program(source: &Path, place: &Path, name: &str) -> Result<(), String> {
    if !source.join("Cargo.toml").exists() {
        return Ok(());
    }
    let mut cargo = Command::new("cargo");
    cargo
        .args(["build", "--release", "--locked"])
        .current_dir(source)
        .env("CARGO_TARGET_DIR", place.join("target"))
        .env("RUSTFLAGS", "-C target-cpu=native");
    step(name, &mut cargo)
}

fn step(name: &str, command: &mut Command) -> Result<(), String> {
    let status = command
        .status()
        .map_err(|e| format!("peer {name}: {:?}: {e}", command.get_program()))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("peer {name}: {command:?} failed"))
    }
}
