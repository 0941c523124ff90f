//! Prints the PTX of a WGSL compute shader: `cargo run -p naga-ptx --example translate
//! crates/naga-ptx/examples/double.wgsl [ENTRY]`.

use std::error::Error;

use naga::valid::{Capabilities, ValidationFlags, Validator};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments
        .next()
        .ok_or("usage: translate SHADER.wgsl [ENTRY]")?;
    let entry = arguments.next().unwrap_or_else(|| "main".to_owned());
    let source = std::fs::read_to_string(&path)?;
    let module = naga::front::wgsl::parse_str(&source)
        .map_err(|error| error.emit_to_string_with_path(&source, &path))?;
    let info = Validator::new(ValidationFlags::all(), Capabilities::all()).validate(&module)?;
    let kernel = naga_ptx::translate(&module, &info, &entry, &naga_ptx::Options::default())
        .map_err(|error| error.with_source(&source))?;
    for (number, binding) in kernel.bindings.iter().enumerate() {
        println!(
            "// p{number}: @group({}) @binding({}) {:?} {:?}",
            binding.group, binding.binding, binding.kind, binding.name
        );
    }
    print!("{}", kernel.ptx);
    Ok(())
}
