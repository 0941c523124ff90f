//! Finding and naming CUDA devices; where there is none, the reason.

use std::ffi::{c_char, c_int};
use std::sync::LazyLock;

use cudarc::driver::sys::{CUdevice, CUdevice_attribute as Attribute, CUuuid};

use super::driver::{Driver, call, driver};
use super::sensors;
use crate::device::{
    AbsentDevice, Api, DeviceInfo, DeviceKind, DeviceLimits, INDEXABLE_BYTES, format_uuid,
};
use crate::dtype::DType;
use crate::error::Result;

/// The minimum compute capability: the target of the PTX that kernels are translated to.
const MIN_COMPUTE_CAPABILITY: (c_int, c_int) = (7, 5);

/// A device of the driver that kernels run on.
pub(super) struct Found {
    pub driver: &'static Driver,
    pub handle: CUdevice,
    pub info: DeviceInfo,
    pub capability: (c_int, c_int),
    /// Whether it allocates in stream order.
    pub memory_pools: bool,
}

/// The driver's devices, enumerated once per process.
static DEVICES: LazyLock<(Vec<Found>, Vec<AbsentDevice>)> = LazyLock::new(|| {
    let absent = |device: String, reason: &str| AbsentDevice {
        device,
        reason: reason.to_owned(),
    };
    let (driver, version) = match driver() {
        Ok(found) => found,
        Err(reason) => return (Vec::new(), vec![absent("cuda".to_owned(), reason)]),
    };
    let mut count = 0;
    // SAFETY: the driver is initialised and writes one int.
    if let Err(error) = unsafe { call!(driver, cuDeviceGetCount(&raw mut count)) } {
        return (
            Vec::new(),
            vec![absent("cuda".to_owned(), &error.to_string())],
        );
    }
    let (mut found, mut missing) = (Vec::new(), Vec::new());
    for number in 0..count {
        match describe(driver, version, number) {
            Ok(device) => match capability_fault(&device.info.name, device.capability) {
                None => found.push(device),
                Some(fault) => missing.push(absent(device.info.id, &fault)),
            },
            Err(error) => missing.push(absent(format!("cuda:{number}"), &error.to_string())),
        }
    }
    if count == 0 {
        missing.push(absent("cuda".to_owned(), "the driver lists no device"));
    }
    (found, missing)
});

/// The properties of every device that kernels run on.
pub(in crate::device) fn list() -> Vec<DeviceInfo> {
    DEVICES.0.iter().map(|device| device.info.clone()).collect()
}

/// The devices that cannot be used, with the reason; one entry for all where the driver itself is
/// missing.
pub(in crate::device) fn absent() -> Vec<AbsentDevice> {
    DEVICES.1.clone()
}

/// A device by its number.
pub(super) fn find(number: usize) -> Option<&'static Found> {
    let id = format!("cuda:{number}");
    DEVICES.0.iter().find(|device| device.info.id == id)
}

fn capability_fault(name: &str, (major, minor): (c_int, c_int)) -> Option<String> {
    let (min_major, min_minor) = MIN_COMPUTE_CAPABILITY;
    ((major, minor) < MIN_COMPUTE_CAPABILITY).then(|| {
        format!("{name} has compute capability {major}.{minor}, {min_major}.{min_minor} is needed")
    })
}

fn describe(driver: &'static Driver, version: &str, number: c_int) -> Result<Found> {
    let mut handle = 0;
    let mut name = [0; 256];
    let mut address = [0; 32];
    let mut uuid = CUuuid { bytes: [0; 16] };
    let mut memory_bytes = 0;
    // SAFETY: the driver is initialised, the number is below its count, and each call writes to the
    // given place, of the given length.
    unsafe {
        call!(driver, cuDeviceGet(&raw mut handle, number))?;
        call!(
            driver,
            cuDeviceGetName(name.as_mut_ptr(), name.len() as c_int, handle)
        )?;
        call!(
            driver,
            cuDeviceGetPCIBusId(address.as_mut_ptr(), address.len() as c_int, handle)
        )?;
        call!(driver, cuDeviceGetUuid_v2(&raw mut uuid, handle))?;
        call!(driver, cuDeviceTotalMem_v2(&raw mut memory_bytes, handle))?;
    }
    let ask = |attribute: Attribute| attribute_of(driver, handle, attribute);
    let capability = (
        ask(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
        ask(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
    );
    let warp = ask(Attribute::CU_DEVICE_ATTRIBUTE_WARP_SIZE)? as u32;
    let integrated = ask(Attribute::CU_DEVICE_ATTRIBUTE_INTEGRATED)? != 0;
    let memory_bytes = memory_bytes as u64;
    let driver_name = match sensors::driver_version() {
        Some(release) => format!("NVIDIA {release}, CUDA {version}"),
        None => format!("NVIDIA, CUDA {version}"),
    };
    let info = DeviceInfo {
        id: format!("cuda:{number}"),
        name: text(&name),
        uuid: Some(format_uuid(&uuid.bytes.map(|byte| byte as u8))),
        pci: Some(text(&address).to_lowercase()),
        driver: driver_name,
        api: Api::Cuda,
        kind: if integrated {
            DeviceKind::Integrated
        } else {
            DeviceKind::Discrete
        },
        software: false,
        memory_bytes: Some(memory_bytes),
        compute_units: Some(ask(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)? as u32),
        simd_width: (warp, warp),
        unified_memory: false,
        limits: DeviceLimits {
            max_binding_bytes: INDEXABLE_BYTES.min(memory_bytes),
            max_buffer_bytes: memory_bytes,
            max_groups: crate::kernel::MAX_GROUPS,
            workgroup_memory_bytes: ask(
                Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
            )? as u32,
            max_workgroup_size: ask(Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK)? as u32,
            max_loop_iterations: None,
        },
        dtypes: vec![DType::F32, DType::U32, DType::I32, DType::F64],
    };
    let memory_pools = ask(Attribute::CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED)? != 0;
    Ok(Found {
        driver,
        handle,
        info,
        capability,
        memory_pools,
    })
}

fn attribute_of(driver: &Driver, handle: CUdevice, attribute: Attribute) -> Result<c_int> {
    let mut value = 0;
    // SAFETY: the handle comes from the driver and the call writes one int.
    unsafe {
        call!(
            driver,
            cuDeviceGetAttribute(&raw mut value, attribute, handle)
        )
    }?;
    Ok(value)
}

/// The text up to the terminating zero.
fn text(bytes: &[c_char]) -> String {
    let bytes: Vec<u8> = bytes
        .iter()
        .map(|&byte| byte as u8)
        .take_while(|&byte| byte != 0)
        .collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cards_from_turing_on_will_do() {
        for (capability, fault) in [
            (
                (6, 1),
                Some("GTX 1080 has compute capability 6.1, 7.5 is needed"),
            ),
            (
                (7, 0),
                Some("GTX 1080 has compute capability 7.0, 7.5 is needed"),
            ),
            ((7, 5), None),
            ((8, 0), None),
            ((12, 0), None),
        ] {
            assert_eq!(capability_fault("GTX 1080", capability).as_deref(), fault);
        }
    }

    #[test]
    fn a_machine_has_devices_or_a_reason() {
        assert!(
            !list().is_empty()
                || absent().iter().all(|absent| !absent.reason.is_empty()) && !absent().is_empty()
        );
    }

    #[test]
    fn texts_end_at_their_zero() {
        assert_eq!(
            text(&[b'a' as c_char, b'b' as c_char, 0, b'c' as c_char]),
            "ab"
        );
    }
}
