//! A stand-in for NVIDIA's driver library (`libcuda`), so that the CUDA device's calls are executed
//! without a GPU.
//!
//! It is a test double: device memory is host memory, kernels run in the PTX interpreter, one
//! thread at a time. It is built only by its own tests and found only if they put it on the library
//! path. It is stricter than a real driver: handles, contexts, ranges and pinned memory are checked
//! on every call, uninitialised reads and races fault, and work on a stream is delayed until the
//! last moment that the stream's order allows, so that a host that does not wait reads stale bytes.
//!
//! Environment: `CUDA_DOUBLE_DEVICES` (1), `CUDA_DOUBLE_VERSION` (12040), `CUDA_DOUBLE_CAPABILITY`
//! (75), `CUDA_DOUBLE_MEMORY` in bytes (4 GiB), `CUDA_DOUBLE_FAIL` (`NAME:N:CODE`: the N-th call of
//! a function fails).
#![allow(non_snake_case, reason = "the driver's own names")]

mod state;
mod stream;

use std::ffi::{CStr, c_char, c_int, c_uint, c_ulonglong, c_void};

use state::{Answer, Code, INVALID_VALUE, SUCCESS, State, with_state};

/// Runs a call on the shared state and converts its outcome to a code.
fn answer(name: &str, call: impl FnOnce(&mut State) -> Answer) -> Code {
    with_state(|state| {
        state
            .count_call(name)
            .and_then(|()| call(state))
            .err()
            .unwrap_or(SUCCESS)
    })
}

/// # Safety
/// `to` is null or valid for a write.
unsafe fn put<T>(to: *mut T, value: T) -> Answer {
    if to.is_null() {
        return Err(INVALID_VALUE);
    }
    // SAFETY: not null, and the caller passed a location for it as the driver's interface requires.
    unsafe { to.write(value) };
    Ok(())
}

/// # Safety
/// `to` is valid for `length` bytes.
unsafe fn put_text(to: *mut c_char, length: usize, text: &str) -> Answer {
    let bytes = text.as_bytes();
    if to.is_null() || bytes.len() >= length {
        return Err(INVALID_VALUE);
    }
    // SAFETY: the text and its zero fit `length`.
    unsafe {
        to.cast::<u8>()
            .copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        to.cast::<u8>().add(bytes.len()).write(0);
    }
    Ok(())
}

/// Exports functions of the driver: each body receives the state and returns `Ok` or a code.
macro_rules! driver {
    ($($name:ident($state:ident $(, $argument:ident: $type:ty)*) $body:block)*) => {$(
        /// The driver's function of this name.
        ///
        /// # Safety
        /// Pointers are valid as the driver API's reference requires.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> Code {
            answer(stringify!($name), |$state| {
                let _ = &$state;
                // SAFETY: the caller keeps the driver API's rules for its pointers.
                #[allow(unused_unsafe, reason = "some bodies read no pointer")]
                unsafe { $body }
            })
        }
    )*};
}

type Handle = usize;

driver! {
    cuInit(state, flags: c_uint) { state.initialise(flags) }
    cuDriverGetVersion(state, version: *mut c_int) { put(version, state.settings.version) }
    cuDeviceGetCount(state, count: *mut c_int) { put(count, state.settings.devices) }
    cuDeviceGet(state, device: *mut c_int, ordinal: c_int) { state.device(ordinal)?; put(device, ordinal) }
    cuDeviceGetName(state, name: *mut c_char, length: c_int, device: c_int) {
        state.device(device)?;
        put_text(name, length as usize, "PTX interpreter (test double, no GPU)")
    }
    cuDeviceGetUuid_v2(state, uuid: *mut [u8; 16], device: c_int) { state.device(device)?; put(uuid, [device as u8; 16]) }
    cuDeviceGetPCIBusId(state, name: *mut c_char, length: c_int, device: c_int) {
        state.device(device)?;
        put_text(name, length as usize, &format!("0000:{device:02x}:00.0"))
    }
    cuDeviceGetAttribute(state, value: *mut c_int, attribute: c_uint, device: c_int) {
        state.device(device)?;
        put(value, state.settings.attribute(attribute)?)
    }
    cuDeviceTotalMem_v2(state, bytes: *mut usize, device: c_int) { state.device(device)?; put(bytes, state.settings.memory) }
    cuDevicePrimaryCtxRetain(state, context: *mut Handle, device: c_int) { state.device(device)?; put(context, state.retain(device)) }
    cuDevicePrimaryCtxRelease_v2(state, device: c_int) { state.device(device)?; state.release(device) }
    cuCtxSetCurrent(state, context: Handle) { state.set_current(context) }
    cuStreamCreate(state, stream: *mut Handle, _flags: c_uint) { put(stream, state.new_stream()?) }
    cuStreamDestroy_v2(state, stream: Handle) { state.drop_stream(stream) }
    cuStreamSynchronize(state, stream: Handle) { state.synchronize(stream) }
    cuStreamBeginCapture_v2(state, stream: Handle, _mode: c_uint) { state.begin_capture(stream) }
    cuStreamEndCapture(state, stream: Handle, graph: *mut Handle) { put(graph, state.end_capture(stream)?) }
    cuGraphInstantiateWithFlags(state, executable: *mut Handle, graph: Handle, _flags: c_ulonglong) { put(executable, state.instantiate(graph)?) }
    cuGraphDestroy(state, graph: Handle) { state.drop_graph(graph) }
    cuGraphUpload(state, executable: Handle, stream: Handle) { state.upload_graph(executable, stream) }
    cuGraphLaunch(state, executable: Handle, stream: Handle) { state.launch_graph(executable, stream) }
    cuGraphExecDestroy(state, executable: Handle) { state.drop_executable(executable) }
    cuDeviceGetDefaultMemPool(state, pool: *mut Handle, device: c_int) { state.device(device)?; put(pool, device as usize + 1) }
    cuMemPoolSetAttribute(_state, pool: Handle, _attribute: c_uint, value: *mut c_void) {
        if pool == 0 || value.is_null() { Err(INVALID_VALUE) } else { Ok(()) }
    }
    cuMemPoolTrimTo(_state, pool: Handle, _keep: usize) { if pool == 0 { Err(INVALID_VALUE) } else { Ok(()) } }
    cuMemPoolSetAccess(_state, pool: Handle, access: *const c_void, count: usize) {
        if pool == 0 || access.is_null() || count == 0 { Err(INVALID_VALUE) } else { Ok(()) }
    }
    cuMemAllocAsync(state, address: *mut u64, bytes: usize, stream: Handle) { state.stream(stream)?; put(address, state.allocate(bytes)?) }
    cuMemFreeAsync(state, address: u64, stream: Handle) { state.free_later(address, stream) }
    cuMemAlloc_v2(state, address: *mut u64, bytes: usize) { put(address, state.allocate(bytes)?) }
    cuMemFree_v2(state, address: u64) { state.free_now(address) }
    cuMemHostAlloc(state, start: *mut *mut c_void, bytes: usize, _flags: c_uint) { put(start, state.pin(bytes)?.cast()) }
    cuMemFreeHost(state, start: *mut c_void) { state.unpin(start.cast()) }
    cuMemcpyHtoDAsync_v2(state, to: u64, from: *const c_void, bytes: usize, stream: Handle) { state.copy_up(to, from as usize, bytes, stream) }
    cuMemcpyDtoHAsync_v2(state, to: *mut c_void, from: u64, bytes: usize, stream: Handle) { state.copy_down(to as usize, from, bytes, stream) }
    cuMemcpyDtoDAsync_v2(state, to: u64, from: u64, bytes: usize, stream: Handle) { state.copy_across(to, from, bytes, stream) }
    cuDeviceCanAccessPeer(state, can: *mut c_int, device: c_int, peer: c_int) {
        state.device(device)?;
        state.device(peer)?;
        put(can, c_int::from(device != peer))
    }
    cuCtxEnablePeerAccess(state, peer: Handle, _flags: c_uint) { state.enable_peer(peer) }
    cuMemcpyPeerAsync(state, to: u64, to_context: Handle, from: u64, from_context: Handle, bytes: usize, stream: Handle) {
        state.context(to_context)?;
        state.context(from_context)?;
        state.copy_across(to, from, bytes, stream)
    }
    cuModuleLoadDataEx(state, module: *mut Handle, image: *const c_void, count: c_uint, options: *mut c_uint, values: *mut *mut c_void) {
        if image.is_null() {
            return Err(INVALID_VALUE);
        }
        // SAFETY: the image is text with a zero at its end.
        let text = unsafe { CStr::from_ptr(image.cast()) }.to_str().map_err(|_| INVALID_VALUE)?;
        match state.load_module(text) {
            Ok(handle) => put(module, handle),
            Err((code, log)) => {
                // SAFETY: there are `count` options and values.
                unsafe { write_log(count as usize, options, values, &log) };
                Err(code)
            }
        }
    }
    cuModuleUnload(state, module: Handle) { state.unload(module) }
    cuModuleGetFunction(state, function: *mut Handle, module: Handle, name: *const c_char) {
        // SAFETY: the name ends in a zero.
        let name = unsafe { CStr::from_ptr(name) }.to_str().map_err(|_| INVALID_VALUE)?;
        put(function, state.function(module, name)?)
    }
    cuFuncSetAttribute(state, function: Handle, attribute: c_uint, value: c_int) { state.set_function_attribute(function, attribute, value) }
    cuEventCreate(state, event: *mut Handle, _flags: c_uint) { put(event, state.new_event()?) }
    cuEventDestroy_v2(state, event: Handle) { state.drop_event(event) }
    cuEventRecord(state, event: Handle, stream: Handle) { state.record_event(event, stream) }
    cuEventRecordWithFlags(state, event: Handle, stream: Handle, _flags: c_uint) { state.record_event(event, stream) }
    cuEventSynchronize(state, event: Handle) { state.synchronize_event(event) }
    cuEventElapsedTime(state, milliseconds: *mut f32, from: Handle, to: Handle) { put(milliseconds, state.elapsed(from, to)?) }
}

/// The driver's function of this name.
///
/// # Safety
/// `parameters` holds a pointer to each of the kernel's parameters.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuLaunchKernel(
    function: Handle,
    grid_x: c_uint,
    grid_y: c_uint,
    grid_z: c_uint,
    block_x: c_uint,
    block_y: c_uint,
    block_z: c_uint,
    shared_bytes: c_uint,
    stream: Handle,
    parameters: *mut *mut c_void,
    _extra: *mut *mut c_void,
) -> Code {
    answer("cuLaunchKernel", |state| {
        let count = state.parameter_count(function)?;
        // SAFETY: the caller passes a pointer for each parameter, and all parameters of these
        // kernels are 64-bit.
        let values = (0..count)
            .map(|i| unsafe { (*parameters.add(i)).cast::<u64>().read_unaligned() })
            .collect();
        state.launch(
            function,
            [grid_x, grid_y, grid_z],
            [block_x, block_y, block_z],
            shared_bytes,
            values,
            stream,
        )
    })
}

/// The driver's function of this name.
///
/// # Safety
/// `text` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGetErrorName(code: Code, text: *mut *const c_char) -> Code {
    // SAFETY: as the caller's.
    unsafe { error_text(text, state::error_name(code)) }
}

/// The driver's function of this name.
///
/// # Safety
/// `text` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGetErrorString(code: Code, text: *mut *const c_char) -> Code {
    // SAFETY: as the caller's.
    unsafe { error_text(text, state::error_name(code)) }
}

/// # Safety
/// `text` is valid for a write.
unsafe fn error_text(text: *mut *const c_char, name: Option<&'static CStr>) -> Code {
    let pointer = name.map_or(std::ptr::null(), CStr::as_ptr);
    // SAFETY: the caller passed a location for the pointer.
    match unsafe { put(text, pointer) } {
        Ok(()) if name.is_some() => SUCCESS,
        _ => INVALID_VALUE,
    }
}

/// Fills the error log buffer that the options name.
///
/// # Safety
/// `options` and `values` hold `count` entries; a log buffer is as long as its size option says.
unsafe fn write_log(count: usize, options: *mut c_uint, values: *mut *mut c_void, log: &str) {
    const ERROR_LOG: c_uint = 5;
    const ERROR_LOG_BYTES: c_uint = 6;
    let value = |option| {
        // SAFETY: as the caller's.
        (0..count).find_map(|i| unsafe { (*options.add(i) == option).then(|| *values.add(i)) })
    };
    if let (Some(buffer), Some(bytes)) = (value(ERROR_LOG), value(ERROR_LOG_BYTES)) {
        let room = (bytes as usize).saturating_sub(1).min(log.len());
        let cut = (0..=room)
            .rev()
            .find(|&at| log.is_char_boundary(at))
            .unwrap_or(0);
        // SAFETY: the buffer holds `bytes` bytes.
        let _ = unsafe { put_text(buffer.cast(), bytes as usize, &log[..cut]) };
    }
}
