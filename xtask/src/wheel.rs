//! The Python package as a wheel: from the library that the tests have built, for `cargo xtask
//! test`; and `cargo xtask wheel`, the one for users.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::suite::succeed;
use crate::tally::is_required;
use crate::test_programs::Program;

/// Variable with the interpreter in which the wheel is installed, for the test that runs the tests
/// of the package.
pub const INTERPRETER: &str = "TECTUM_WHEEL_PYTHON";
/// Platforms on which the wheel for users can be installed: those with this C library or a newer.
const COMPATIBILITY: &str = "manylinux_2_28";
/// What packs a wheel from a finished library.
const MODULES: &str = "import maturin, wheel";

/// The interpreter of the repository's environment.
fn interpreter(root: &Path) -> PathBuf {
    root.join(".venv/bin/python3")
}

/// Packs the wheel with the library of the tests, and installs it: into the environment of the
/// repository, and into one that has nothing but it and what it requires. Returns the interpreter
/// of the first, or nothing where the environment cannot pack wheels.
///
/// # Errors
/// A step that fails; the environment cannot pack wheels, but must.
pub fn install(root: &Path, programs: &[Program]) -> Result<Option<PathBuf>, String> {
    let python = interpreter(root);
    let mut check = Command::new(&python);
    let can_pack = check.args(["-c", MODULES]).output();
    if !can_pack.is_ok_and(|output| output.status.success()) {
        println!("skipped: python with maturin and wheel in .venv: the package as a wheel");
        return if is_required("python") {
            Err("wheel: .venv has no maturin or no wheel".to_owned())
        } else {
            Ok(None)
        };
    }
    let wheel = pack(root, &python, programs)?;
    let mut install = Command::new(&python);
    install.args(["-m", "pip", "install", "--quiet", "--no-deps"]);
    install.arg("--force-reinstall").arg(&wheel);
    succeed("pip install of the wheel", &mut install)?;
    let clean = root.join("target/wheel-environment");
    let mut create = Command::new(&python);
    create.args(["-m", "venv", "--clear"]).arg(&clean);
    succeed("an environment for the wheel", &mut create)?;
    let alone = clean.join("bin/python3");
    let mut install = Command::new(&alone);
    install
        .args(["-m", "pip", "install", "--quiet"])
        .arg(&wheel);
    succeed("pip install of the wheel alone", &mut install)?;
    let mut import = Command::new(&alone);
    import.args(["-c", "import tectum; print(*tectum.devices(), sep='\\n')"]);
    succeed("import of the wheel alone", import.current_dir(&clean))?;
    Ok(Some(python))
}

/// Packs the wheel: metadata by maturin, files of the package, the library.
fn pack(root: &Path, python: &Path, programs: &[Program]) -> Result<PathBuf, String> {
    let failed = |path: &Path, e: std::io::Error| format!("wheel: {}: {e}", path.display());
    let is_tests = |program: &&Program| program.package == "tectum-py" && program.kind == "test";
    let tests = programs.iter().find(is_tests);
    // Cargo puts the library next to the test program.
    let library = tests
        .ok_or("wheel: cargo built no tests of tectum-py")?
        .executable
        .with_file_name(format!(
            "{}_tectum{}",
            std::env::consts::DLL_PREFIX,
            std::env::consts::DLL_SUFFIX
        ));
    let (stage, folder) = (root.join("target/wheel"), root.join("crates/tectum-py"));
    if stage.exists() {
        std::fs::remove_dir_all(&stage).map_err(|e| failed(&stage, e))?;
    }
    let package = stage.join("tectum");
    std::fs::create_dir_all(&package).map_err(|e| failed(&package, e))?;
    let mut describe = Command::new(python);
    describe.args(["-m", "maturin", "pep517", "write-dist-info"]);
    describe.arg("--metadata-directory").arg(&stage);
    describe.arg("--interpreter").arg(python);
    succeed(
        "metadata of the wheel",
        describe
            .current_dir(&folder)
            .stdout(std::process::Stdio::null()),
    )?;
    let sources = folder.join("python/tectum");
    let entries = std::fs::read_dir(&sources).map_err(|e| failed(&sources, e))?;
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        if let Some(name) = path.file_name().filter(|_| path.is_file()) {
            std::fs::copy(&path, package.join(name)).map_err(|e| failed(&path, e))?;
        }
    }
    let module = package.join("_tectum.abi3.so");
    std::fs::copy(&library, &module).map_err(|e| failed(&library, e))?;
    let wheels = root.join("target/wheels");
    std::fs::create_dir_all(&wheels).map_err(|e| failed(&wheels, e))?;
    let mut pack = Command::new(python);
    pack.args(["-m", "wheel", "pack", "--dest-dir"])
        .arg(&wheels);
    succeed("packing of the wheel", pack.arg(&stage))?;
    newest(&wheels)
}

/// The wheel in a folder that was written last.
fn newest(folder: &Path) -> Result<PathBuf, String> {
    let entries = std::fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let wheels = paths.filter(|path| path.extension().is_some_and(|ending| ending == "whl"));
    wheels
        .max_by_key(|path| path.metadata().and_then(|data| data.modified()).ok())
        .ok_or_else(|| format!("{}: no wheel", folder.display()))
}

/// Builds the wheel for users: optimised, for every Linux with the C library of [`COMPATIBILITY`].
///
/// # Errors
/// A step that fails; maturin and ziglang, whose linker knows older C libraries, are missing.
pub fn release(root: &Path) -> Result<(), String> {
    let mut build = Command::new(interpreter(root));
    build.args(["-m", "maturin", "build", "--release", "--zig"]);
    // There it finds zig, as a module of the first Python.
    let mut paths = vec![root.join(".venv/bin")];
    paths.extend(std::env::split_paths(
        &std::env::var_os("PATH").unwrap_or_default(),
    ));
    build.env(
        "PATH",
        std::env::join_paths(paths).map_err(|e| format!("wheel: PATH: {e}"))?,
    );
    build.args([
        "--compatibility",
        COMPATIBILITY,
        "--out",
        "../../target/wheels",
    ]);
    succeed(
        "maturin build; `.venv/bin/pip install maturin ziglang` installs what it needs",
        build.current_dir(root.join("crates/tectum-py")),
    )?;
    println!("{}", newest(&root.join("target/wheels"))?.display());
    Ok(())
}
