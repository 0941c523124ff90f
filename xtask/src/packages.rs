//! `cargo xtask packages`: what the users of single crates depend on. Each crate compiles with each
//! set of features and from its package, its documentation has no broken link, the compiler is the
//! minimum, and all dependencies have allowed licences.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::budget::timed;
use crate::suite::succeed;
use crate::tally::{REQUIRE, is_required};
use crate::test_programs::cargo;
use crate::{licenses, rotation};

/// Features of each crate that are checked, each set without the default ones. A feature that is
/// missing here is compiled with the default ones and left out in the empty set; those of the
/// crates above `tectum` that have its names only pass on.
const FEATURES: &[(&str, &[&str])] = &[
    ("source-revision", &[""]),
    ("naga-ptx", &[""]),
    ("tectum", &["", "cuda", "wgpu"]),
    ("tectum-programs", &[""]),
    ("tectum-equations", &[""]),
    ("tectum-graph", &[""]),
    ("tectum-onnx", &[""]),
    ("tectum-bench", &[""]),
    ("tectum-spiking", &["", "genome"]),
    ("tectum-field", &[""]),
    ("tectum-transformer", &["", "gguf"]),
    ("tectum-control", &["", "field", "genome", "onnx"]),
    ("tectum-link", &[""]),
    ("tectum-cli", &[""]),
];

/// How many crates a sample has: another part each hour.
const SAMPLE: usize = 4;

/// Runs every step.
pub fn run(root: &Path) -> Result<(), String> {
    compiler_and_licences(root)?;
    timed(root, "features of each crate", || features(root, FEATURES))?;
    timed(root, "documentation of each crate", || documentation(root))?;
    timed(root, "packages", || build_from(root, FEATURES))
}

/// Each published crate is in the table of features, the compiler is the minimum, and all
/// dependencies have allowed licences.
pub fn compiler_and_licences(root: &Path) -> Result<(), String> {
    let packages = published(root)?;
    let listed: Vec<&str> = FEATURES.iter().map(|(name, _)| *name).collect();
    if let Some(package) = packages
        .iter()
        .find(|package| !listed.contains(&package.name.as_str()))
    {
        return Err(format!(
            "packages: {} is published and has no row in xtask/src/packages.rs",
            package.name
        ));
    }
    minimum_compiler(root, &packages)?;
    timed(root, "licences and duplicate versions", || {
        let faults = licenses::faults(root)?;
        faults.iter().for_each(|fault| eprintln!("{fault}"));
        if faults.is_empty() {
            Ok(())
        } else {
            Err(format!("packages: {} faults of dependencies", faults.len()))
        }
    })
}

/// Lints of a sample of the crates with each set of their features.
pub fn features_of_some(root: &Path) -> Result<(), String> {
    features(root, &rotation::of_this_hour(FEATURES.to_vec(), SAMPLE)?)
}

/// The documentation of every crate, warnings refused.
pub fn documentation(root: &Path) -> Result<(), String> {
    succeed(
        "documentation of each crate",
        cargo(root, &["doc", "-q", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings"),
    )
}

/// Packages every crate and compiles a sample of them from their packages.
pub fn build_from_some(root: &Path) -> Result<(), String> {
    build_from(root, &rotation::of_this_hour(FEATURES.to_vec(), SAMPLE)?)
}

/// Lints of each crate with each set of its features.
fn features(root: &Path, crates: &[(&str, &[&str])]) -> Result<(), String> {
    for (name, sets) in crates {
        for features in *sets {
            let selected = ["-p", name, "--no-default-features", "--features", features];
            let arguments = [&["clippy", "-q"], &selected[..], &["--", "-D", "warnings"]].concat();
            let title = format!("lints of {name} with only the features {features:?}");
            println!("{title}");
            succeed(&title, &mut cargo(root, &arguments))?;
        }
    }
    Ok(())
}

/// A package that is published.
struct Package {
    name: String,
    version: String,
    rust_version: String,
}

impl Package {
    /// The folder in its archive.
    fn folder(&self) -> String {
        format!("{}-{}", self.name, self.version)
    }
}

/// The packages that are published; each has a README, licences, keywords and categories.
fn published(root: &Path) -> Result<Vec<Package>, String> {
    let output = cargo(root, &["metadata", "--no-deps", "--format-version=1"])
        .output()
        .map_err(|e| format!("cargo metadata: {e}"))?;
    let metadata: Value =
        serde_json::from_slice(&output.stdout).map_err(|e| format!("cargo metadata: {e}"))?;
    let packages = metadata["packages"]
        .as_array()
        .ok_or("cargo metadata: no packages")?;
    let mut found = Vec::new();
    for package in packages
        .iter()
        .filter(|package| package["publish"].is_null())
    {
        let name = package["name"].as_str().unwrap_or_default().to_owned();
        let folder = Path::new(package["manifest_path"].as_str().unwrap_or_default())
            .parent()
            .unwrap_or(root);
        let files = ["README.md", "LICENSE-APACHE", "LICENSE-MIT"]
            .into_iter()
            .filter(|file| !folder.join(file).exists());
        let keys = [
            "description",
            "license",
            "keywords",
            "categories",
            "rust_version",
        ]
        .into_iter();
        let missing: Vec<&str> = files
            .chain(keys.filter(|key| {
                package[*key].is_null() || package[*key].as_array().is_some_and(Vec::is_empty)
            }))
            .collect();
        if !missing.is_empty() {
            return Err(format!("packages: {name} has no {}", missing.join(", ")));
        }
        let text = |key: &str| package[key].as_str().unwrap_or_default().to_owned();
        found.push(Package {
            name,
            version: text("version"),
            rust_version: text("rust_version"),
        });
    }
    Ok(found)
}

/// The compiler in use is the minimum that the manifests name, so that all other steps test the
/// minimum.
fn minimum_compiler(root: &Path, packages: &[Package]) -> Result<(), String> {
    let output = Command::new("rustc")
        .current_dir(root)
        .arg("--version")
        .output()
        .map_err(|e| format!("rustc: {e}"))?;
    let version = String::from_utf8_lossy(&output.stdout)
        .split(' ')
        .nth(1)
        .unwrap_or_default()
        .to_owned();
    let minimum = packages
        .first()
        .map_or("", |package| package.rust_version.as_str());
    if version
        .strip_prefix(minimum)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    {
        println!("== the compiler is the minimum, {minimum}");
        return Ok(());
    }
    let reason = format!("tests of the minimum compiler: rustc {version} is not {minimum}");
    if is_required("msrv") {
        return Err(format!("packages: {reason}, and {REQUIRE} names msrv"));
    }
    println!("skipped: {reason}");
    Ok(())
}

/// Packages every crate and compiles these from their packages, with sister crates from their packages:
/// in a workspace of its own, with the profile and the folder of this one, so that other
/// dependencies are compiled already.
fn build_from(root: &Path, compiled: &[(&str, &[&str])]) -> Result<(), String> {
    let packages = &published(root)?;
    let selected = packages
        .iter()
        .flat_map(|package| ["-p", package.name.as_str()]);
    let arguments: Vec<&str> = ["package", "-q", "--offline", "--no-verify", "--allow-dirty"]
        .into_iter()
        .chain(selected)
        .collect();
    succeed("packages", &mut cargo(root, &arguments))?;
    let place = root.join("target/packages");
    let failed = |e: std::io::Error| format!("packages: {}: {e}", place.display());
    if place.exists() {
        std::fs::remove_dir_all(&place).map_err(failed)?;
    }
    std::fs::create_dir_all(&place).map_err(failed)?;
    for package in packages {
        let archive = root.join(format!("target/package/{}.crate", package.folder()));
        let status = Command::new("tar")
            .arg("-xzf")
            .arg(&archive)
            .arg("-C")
            .arg(&place)
            .status()
            .map_err(|e| format!("tar: {e}"))?;
        if !status.success() {
            return Err(format!(
                "packages: {} cannot be unpacked",
                archive.display()
            ));
        }
    }
    std::fs::write(place.join("Cargo.toml"), workspace(root, packages)?).map_err(failed)?;
    std::fs::copy(root.join("Cargo.lock"), place.join("Cargo.lock")).map_err(failed)?;
    let mut check = cargo(&place, &["check", "-q", "--offline"]);
    for (name, _) in compiled {
        check.args(["-p", name]);
    }
    succeed(
        "what is in the packages",
        check.env("CARGO_TARGET_DIR", root.join("target")),
    )
}

/// The manifest of a workspace of unpacked packages.
fn workspace(root: &Path, packages: &[Package]) -> Result<String, String> {
    let text =
        std::fs::read_to_string(root.join("Cargo.toml")).map_err(|e| format!("Cargo.toml: {e}"))?;
    let manifest: toml::Table = toml::from_str(&text).map_err(|e| format!("Cargo.toml: {e}"))?;
    let members: Vec<String> = packages.iter().map(Package::folder).collect();
    let patches = packages.iter().map(|package| {
        (
            package.name.clone(),
            toml::Table::from_iter([("path".to_owned(), package.folder().into())]).into(),
        )
    });
    let workspace = toml::Table::from_iter([
        ("resolver".to_owned(), "3".into()),
        ("members".to_owned(), members.into()),
    ]);
    let mut table = toml::Table::from_iter([("workspace".to_owned(), workspace.into())]);
    table.insert(
        "profile".to_owned(),
        manifest
            .get("profile")
            .cloned()
            .unwrap_or_else(|| toml::Table::new().into()),
    );
    table.insert(
        "patch".to_owned(),
        toml::Table::from_iter([(
            "crates-io".to_owned(),
            toml::Table::from_iter(patches).into(),
        )])
        .into(),
    );
    toml::to_string(&table).map_err(|e| format!("packages: {e}"))
}
