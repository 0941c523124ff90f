//! Runs the table's PTX on every NVIDIA GPU through its driver.

use std::ffi::{CString, c_void};

use cudarc::driver::{result, sys};

use crate::case::{Case, Target};
use crate::kernel::{VARIANTS, Variant};
use crate::report::{Outcome, Run};

/// Threads in a warp.
const SUBGROUP_SIZE: usize = 32;
/// Bytes after each buffer that must remain unchanged.
const GUARD_BYTES: usize = 256;
const GUARD: u8 = 0xa5;

/// Runs the cases on every GPU, or reports why there is none.
pub fn run(cases: &[&Case]) -> Result<Vec<Run>, String> {
    // SAFETY: opens the driver's library and closes it again; its initialisation has no other
    // requirement.
    if !unsafe { sys::is_culib_present() } {
        return Err("no NVIDIA driver".to_owned());
    }
    result::init().map_err(|error| format!("the driver does not start: {error}"))?;
    let count = result::device::get_count().map_err(|error| error.to_string())?;
    if count == 0 {
        return Err("no NVIDIA GPU".to_owned());
    }
    (0..count).map(|number| run_device(number, cases)).collect()
}

fn run_device(number: i32, cases: &[&Case]) -> Result<Run, String> {
    let device = result::device::get(number).map_err(|error| error.to_string())?;
    let name = result::device::get_name(device).map_err(|error| error.to_string())?;
    let mut version = 0;
    // SAFETY: the driver was initialised, and writes one integer.
    unsafe { sys::cuDriverGetVersion(&mut version) }
        .result()
        .map_err(|error| error.to_string())?;
    let outcomes = cases
        .iter()
        .map(|case| (case.name.clone(), outcome(device, case)))
        .collect();
    let driver = format!("CUDA {}.{}", version / 1000, version % 1000 / 10);
    Ok(Run {
        runner: "cuda",
        device: format!("cuda:{number} {name}"),
        driver,
        outcomes,
        note: None,
    })
}

fn outcome(device: sys::CUdevice, case: &Case) -> Outcome {
    for variant in VARIANTS.iter().filter(|variant| variant.determines(case)) {
        if let Err(why) = check_variant(device, case, *variant) {
            return Outcome::Failed(format!("{}: {why}", variant.name));
        }
    }
    Outcome::Passed
}

fn check_variant(device: sys::CUdevice, case: &Case, variant: Variant) -> Result<(), String> {
    let kernel = variant.translate(case)?;
    // SAFETY: the device came from the driver; the context is released below, and recreated if a
    // fault corrupted it.
    unsafe {
        let context = result::primary_ctx::retain(device).map_err(|error| error.to_string())?;
        result::ctx::set_current(context).map_err(|error| error.to_string())?;
    }
    let contents = execute(case, &kernel);
    // SAFETY: the context was retained above and none of its objects is used any more.
    unsafe {
        if contents.is_err() {
            sys::cuDevicePrimaryCtxReset_v2(device)
                .result()
                .map_err(|error| error.to_string())?;
        }
        result::primary_ctx::release(device).map_err(|error| error.to_string())?;
    }
    let contents = contents?;
    for (buffer, bytes) in case.buffers.iter().zip(&contents) {
        if bytes[buffer.bytes.len()..]
            .iter()
            .any(|&byte| byte != GUARD)
        {
            return Err("a write behind a buffer".to_owned());
        }
    }
    let outputs = case.outputs(SUBGROUP_SIZE);
    outputs.iter().try_for_each(|output| {
        let bytes = &contents[output.buffer][..case.buffers[output.buffer].bytes.len()];
        output
            .compare(Target::Ptx, bytes)
            .map_err(|difference| difference.to_string())
    })
}

/// The contents of every buffer and of the guard after it, after the launch.
fn execute(case: &Case, kernel: &naga_ptx::Kernel) -> Result<Vec<Vec<u8>>, String> {
    let text = CString::new(kernel.ptx.as_str()).map_err(|error| error.to_string())?;
    // SAFETY: a context is current; the text ends in NUL; buffers outlive the launch, which is
    // waited for; the parameters are the addresses and sizes that the kernel's interface requires.
    unsafe {
        let module = result::module::load_data(text.as_ptr().cast())
            .map_err(|error| format!("loading: {error}"))?;
        let contents = launch(case, kernel, module);
        match contents {
            Ok(contents) => result::module::unload(module)
                .map(|()| contents)
                .map_err(|error| error.to_string()),
            // A fault corrupts the context, including the module.
            Err(error) => Err(error.to_string()),
        }
    }
}

/// # Safety
/// A context is current and `module` was loaded in it from `kernel`'s text.
unsafe fn launch(
    case: &Case,
    kernel: &naga_ptx::Kernel,
    module: sys::CUmodule,
) -> Result<Vec<Vec<u8>>, result::DriverError> {
    let entry = CString::new(kernel.entry.as_str())
        .expect("invariant: a name in the text, which holds no NUL");
    // SAFETY: the caller guarantees context and module; memory is allocated, filled, read after the
    // launch was waited for, and freed once.
    unsafe {
        let function = result::module::get_function(module, entry)?;
        if kernel.dynamic_shared_bytes > 0 {
            let attribute =
                sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
            result::function::set_function_attribute(
                function,
                attribute,
                kernel.dynamic_shared_bytes as i32,
            )?;
        }
        let mut addresses = Vec::new();
        for buffer in &case.buffers {
            let bytes = [buffer.bytes.as_slice(), &[GUARD; GUARD_BYTES]].concat();
            let address = result::malloc_sync(bytes.len())?;
            result::memcpy_htod_sync(address, &bytes)?;
            addresses.push(address);
        }
        let of_binding = |binding: &naga_ptx::Binding| {
            let at = binding.binding as usize;
            [addresses[at], case.buffers[at].bytes.len() as u64]
        };
        let mut parameters = kernel
            .bindings
            .iter()
            .flat_map(of_binding)
            .collect::<Vec<u64>>();
        let mut pointers = parameters
            .iter_mut()
            .map(|value| std::ptr::from_mut(value).cast::<c_void>())
            .collect::<Vec<_>>();
        let ([gx, gy, gz], [bx, by, bz]) = (case.groups, kernel.workgroup_size);
        let shared = kernel.dynamic_shared_bytes;
        result::launch_kernel(
            function,
            (gx, gy, gz),
            (bx, by, bz),
            shared,
            std::ptr::null_mut(),
            &mut pointers,
        )?;
        result::ctx::synchronize()?;
        let mut contents = Vec::new();
        for (buffer, &address) in case.buffers.iter().zip(&addresses) {
            let mut bytes = vec![0u8; buffer.bytes.len() + GUARD_BYTES];
            result::memcpy_dtoh_sync(&mut bytes, address)?;
            result::free_sync(address)?;
            contents.push(bytes);
        }
        Ok(contents)
    }
}
