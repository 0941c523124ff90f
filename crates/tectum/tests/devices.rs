//! What is said of devices, and which one `auto` takes.

use tectum::{Api, Device, DeviceKind, Error, ErrorKind};

#[test]
fn auto_never_takes_a_software_adapter() -> Result<(), Error> {
    assert!(!Device::open("auto")?.info().software);
    Ok(())
}

#[test]
fn every_listed_device_opens_and_says_of_itself_what_the_list_says() -> Result<(), Error> {
    let listed = Device::list();
    assert_eq!((listed[0].api, listed[1].api), (Api::Cpu, Api::Null));
    for info in &listed {
        let device = Device::open(&info.id)?;
        assert_eq!(device.info(), info);
        let name = info.name.to_lowercase();
        let played = ["llvmpipe", "swiftshader", "basic render"].iter().any(|renderer| name.contains(renderer));
        if played {
            assert!(info.software && info.kind == DeviceKind::Software, "{name} is software");
        }
        if matches!(info.kind, DeviceKind::Discrete | DeviceKind::Integrated) {
            assert!(!info.software && (info.uuid.is_some() || info.pci.is_some()), "{name} can be told from its like");
        }
    }
    if listed.iter().all(|info| info.api != Api::Vulkan) {
        println!("skipped: no Vulkan device: software adapters are marked");
    }
    Ok(())
}

#[test]
fn unknown_ids_are_refused_with_what_is_known() {
    for (id, kind, needle) in [
        ("", ErrorKind::Invalid, "vulkan:N"),
        ("gpu", ErrorKind::Invalid, "\"gpu\""),
        ("vulkan", ErrorKind::Invalid, "vulkan:N"),
        ("vulkan:x", ErrorKind::Invalid, "vulkan:x"),
        ("cuda:0", ErrorKind::Invalid, "cuda:0"),
        ("vulkan:99", ErrorKind::Unsupported, "present: cpu, null"),
    ] {
        let error = Device::open(id).expect_err(id);
        assert!(error.kind() == kind && error.to_string().contains(needle), "{id}: {error}");
    }
}

#[test]
fn measured_rates_are_positive_and_the_cpu_has_no_transfers() -> Result<(), Error> {
    let measured = Device::open("cpu")?.measure()?;
    assert!(measured.copy_bytes_per_s > 0.0 && measured.gemm_flop_per_s > 0.0 && measured.launch_s > 0.0);
    assert_eq!((measured.upload_bytes_per_s, measured.download_bytes_per_s), (None, None));
    Ok(())
}
