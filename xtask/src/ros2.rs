//! The feature `ros2` of tectum-link: lints and tests of a build of its own, since zenoh has more
//! crates than the rest of that package together.

use std::path::Path;

use crate::suite::{self, succeed};
use crate::tally::Tally;
use crate::test_programs::{self, Program, Settings, cargo};

/// Parts of the names of the tests that other builds leave out.
const TESTS: [&str; 2] = ["ros2", "ros_2"];
/// Packages with levels of optimization of their own; nothing here takes long without.
const OPTIMIZED: [&str; 6] = [
    "tectum",
    "tectum-control",
    "tectum-equations",
    "tectum-graph",
    "tectum-programs",
    "tectum-spiking",
];
/// How the names of files begin that only this build compiles, or that it shares a type with.
const FILES: [&str; 7] = [
    "crates/tectum-control/src/ros",
    "crates/tectum-link/Cargo.toml",
    "crates/tectum-link/src/link.rs",
    "crates/tectum-link/src/ros2",
    "crates/tectum-link/src/scenario",
    "crates/tectum-link/src/transport.rs",
    "crates/tectum-link/tests/ros2",
];

/// Whether one of some files is of this build.
pub fn is_touched(files: &[String]) -> bool {
    let is_own = |file: &String| FILES.iter().any(|own| file.starts_with(own));
    files.iter().any(is_own)
}

/// Lints the package with the feature, and runs the tests that need it. The build has the features of
/// this package alone, without those of devices: with the features that zenoh selects, cargo compiles
/// all that precedes it again.
///
/// # Errors
/// A lint, a test that failed, or what cargo reports.
pub fn run(root: &Path) -> Result<(), String> {
    let levels = OPTIMIZED.map(|package| format!("profile.dev.package.{package}.opt-level=0"));
    let levels = levels.into_iter().chain(["profile.dev.opt-level=0".into()]);
    let levels = levels.flat_map(|level| ["--config".to_owned(), level]);
    let selected = ["-p", "tectum-link", "--features", "ros2"].map(str::to_owned);
    let arguments: Vec<String> = selected.into_iter().chain(levels).collect();
    if !test_programs::lints_while_compiling() {
        let mut lints = cargo(root, &["clippy", "--all-targets"]);
        lints.args(&arguments).args(["--", "-D", "warnings"]);
        succeed("lints with ROS 2", &mut lints)?;
    }
    let programs = test_programs::build_alone(root, &arguments)?;
    let tests: Vec<&Program> = programs.iter().filter(|program| program.is_test).collect();
    let settings = Settings {
        environment: suite::first_seed()?.into_iter().collect(),
        only: TESTS.map(str::to_owned).to_vec(),
        ..Settings::default()
    };
    let mut tally = Tally::from_environment();
    test_programs::run_all(&tests, &settings, &mut tally)?;
    match tally.report() {
        true => Ok(()),
        false => Err("tests with ROS 2 failed".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_the_feature_are_known() {
        let files = |name: &str| [name.to_owned()];
        for name in [
            "crates/tectum-link/src/ros2/graph.rs",
            "crates/tectum-link/src/ros2.rs",
            "crates/tectum-link/tests/ros2/peer.py",
        ] {
            assert!(is_touched(&files(name)), "{name}");
        }
        assert!(!is_touched(&files("crates/tectum-link/src/serve.rs")) && !is_touched(&[]));
    }
}
