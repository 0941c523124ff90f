//! Memory of the host: how much is available, and allocations that are refused with both numbers.
//!
//! A size that a file or a call names can exceed the memory of any machine. An ordinary allocation
//! of that size ends the process, and a system that overcommits memory ends it later, when the
//! memory is used. The functions here compare the size with the memory that is available, allocate,
//! and return an error of the kind [`ErrorKind::OutOfMemory`](crate::ErrorKind)
//! instead.
//!
//! ```
//! use tectum::{ErrorKind, host_memory};
//! let zeros = host_memory::filled("a table", 0u32, 1000)?;
//! assert_eq!(zeros.len(), 1000);
//! let error = host_memory::filled("a table", 0u32, usize::MAX / 4).unwrap_err();
//! assert_eq!(error.kind(), ErrorKind::OutOfMemory);
//! assert!(error.to_string().starts_with("a table: 18446744073709551612 bytes of memory are needed, "));
//! # Ok::<(), tectum::Error>(())
//! ```

use std::fmt::Display;
#[cfg(target_os = "linux")]
use std::path::Path;

use crate::error::{Error, ErrorKind, Result};

/// Sizes up to this are not compared with the available memory, which takes some file reads; their
/// allocation is fallible all the same.
const UNCHECKED_BYTES: u64 = 16 << 20;

/// The bytes that this process can still allocate: the minimum of what the system has available
/// with its swap space, and what the limits of its control groups and of the process leave. None if
/// the system reports nothing; only Linux does so far.
pub fn available_bytes() -> Option<u64> {
    #[cfg(target_os = "linux")]
    {
        let read = |path: &str| std::fs::read_to_string(path).ok();
        let system = read("/proc/meminfo").and_then(|text| system_bytes(&text));
        let groups = read("/proc/self/cgroup")
            .and_then(|text| control_group_bytes(&text, Path::new("/sys/fs/cgroup")));
        let process = read("/proc/self/limits")
            .zip(read("/proc/self/status"))
            .and_then(|(limits, status)| process_bytes(&limits, &status));
        [system, groups, process].into_iter().flatten().min()
    }
    #[cfg(not(target_os = "linux"))]
    None
}

/// The memory of the system, without swap space. None if the system does not report it.
pub(crate) fn total_bytes() -> Option<u64> {
    let meminfo = std::fs::read_to_string("/proc/meminfo").ok()?;
    kibibytes(&meminfo, "MemTotal:")
}

/// Checks that `bytes` of memory are available.
///
/// # Errors
/// `OutOfMemory` with the bytes that are needed and those that are available, after `what`.
///
/// # Cost
/// About 0.1 ms above 16 MiB; nothing below, where it never refuses.
pub fn check(what: impl Display, bytes: u64) -> Result<()> {
    if bytes <= UNCHECKED_BYTES {
        return Ok(());
    }
    let available = available_bytes().unwrap_or(isize::MAX as u64);
    if bytes <= available {
        Ok(())
    } else {
        Err(refusal(what, bytes, available))
    }
}

/// Reserves room for `additional` more elements in a vector, exactly.
///
/// # Errors
/// `OutOfMemory` as [`check`], also if the allocation fails.
pub fn reserve<T>(what: impl Display, vector: &mut Vec<T>, additional: usize) -> Result<()> {
    if vector.capacity() - vector.len() >= additional {
        return Ok(());
    }
    let bytes = array_bytes::<T>(vector.len().saturating_add(additional));
    check(&what, bytes)?;
    vector.try_reserve_exact(additional).map_err(|error| {
        refusal(what, bytes, available_bytes().unwrap_or(isize::MAX as u64)).with_source(error)
    })
}

/// An empty vector with room for `capacity` elements.
///
/// # Errors
/// As [`reserve`].
pub fn with_capacity<T>(what: impl Display, capacity: usize) -> Result<Vec<T>> {
    let mut vector = Vec::new();
    reserve(what, &mut vector, capacity)?;
    Ok(vector)
}

/// A vector of `len` copies of a value.
///
/// # Errors
/// As [`reserve`].
pub fn filled<T: Clone>(what: impl Display, value: T, len: usize) -> Result<Vec<T>> {
    let mut vector = with_capacity(what, len)?;
    vector.resize(len, value);
    Ok(vector)
}

/// A copy of a slice.
///
/// # Errors
/// As [`reserve`].
pub fn copied<T: Copy>(what: impl Display, slice: &[T]) -> Result<Vec<T>> {
    let mut vector = with_capacity(what, slice.len())?;
    vector.extend_from_slice(slice);
    Ok(vector)
}

/// Adds an element to a vector whose final length is not known; its memory grows by half.
///
/// # Errors
/// As [`reserve`].
#[inline]
pub fn push<T>(what: impl Display, vector: &mut Vec<T>, element: T) -> Result<()> {
    if vector.len() == vector.capacity() {
        reserve(what, vector, (vector.len() / 2).max(64))?;
    }
    vector.push(element);
    Ok(())
}

/// Bytes of an array; `u64::MAX` if they are more.
pub fn array_bytes<T>(len: usize) -> u64 {
    (len as u64).saturating_mul(size_of::<T>() as u64)
}

/// The bytes of an array of these sizes with elements of `element_bytes` each; `u64::MAX` if they
/// are more.
pub fn shape_bytes(sizes: impl IntoIterator<Item = u64>, element_bytes: u64) -> u64 {
    let mut bytes = u128::from(element_bytes);
    for size in sizes {
        match size {
            0 => return 0,
            // Beyond 2⁶⁴ only a later size of 0 matters.
            size => bytes = bytes.saturating_mul(u128::from(size)),
        }
    }
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

fn refusal(what: impl Display, bytes: u64, available: u64) -> Error {
    let at_least = if bytes == u64::MAX { "at least " } else { "" };
    Error::new(
        ErrorKind::OutOfMemory,
        format!("{what}: {at_least}{bytes} bytes of memory are needed, {available} are available"),
    )
}

/// The number after a key in a text of lines such as `MemTotal: 16 kB`, in bytes.
fn kibibytes(text: &str, key: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

/// What `/proc/meminfo` has available.
#[cfg(any(target_os = "linux", test))]
fn system_bytes(meminfo: &str) -> Option<u64> {
    let swap = kibibytes(meminfo, "SwapFree:").unwrap_or(0);
    Some(kibibytes(meminfo, "MemAvailable:")?.saturating_add(swap))
}

/// What the limits of a process leave: `/proc/self/limits` and `/proc/self/status`.
#[cfg(any(target_os = "linux", test))]
fn process_bytes(limits: &str, status: &str) -> Option<u64> {
    let left = |name: &str, used: &str| {
        let line = limits.lines().find_map(|line| line.strip_prefix(name))?;
        let soft: u64 = line.split_whitespace().next()?.parse().ok()?;
        Some(soft.saturating_sub(kibibytes(status, used)?))
    };
    let address_space = left("Max address space", "VmSize:");
    let data = left("Max data size", "VmData:");
    [address_space, data].into_iter().flatten().min()
}

/// What the memory limits of the control groups in `/proc/self/cgroup` and of the groups that they
/// are in leave. Pages of files that are not in use count as free.
#[cfg(target_os = "linux")]
fn control_group_bytes(groups: &str, root: &Path) -> Option<u64> {
    let left = |folder: &Path, [limit, used, unused]: [&str; 3]| {
        let read = |name: &str| std::fs::read_to_string(folder.join(name)).ok();
        // Without a limit the text is `max`.
        let limit: u64 = read(limit)?.trim().parse().ok()?;
        let used: u64 = read(used)?.trim().parse().ok()?;
        let stat = read("memory.stat").unwrap_or_default();
        let unused: u64 = stat
            .lines()
            .find_map(|line| line.strip_prefix(unused)?.trim().parse().ok())
            .unwrap_or(0);
        Some(limit.saturating_sub(used.saturating_sub(unused)))
    };
    let of_line = |line: &str| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?);
        let (root, names) = if controllers.is_empty() {
            let names = ["memory.max", "memory.current", "inactive_file"];
            (root.to_owned(), names)
        } else if controllers.split(',').any(|name| name == "memory") {
            let names = [
                "memory.limit_in_bytes",
                "memory.usage_in_bytes",
                "total_inactive_file",
            ];
            (root.join("memory"), names)
        } else {
            return None;
        };
        let inside = Path::new(path.trim_start_matches('/'));
        inside
            .ancestors()
            .filter_map(|group| left(&root.join(group), names))
            .min()
    };
    groups.lines().filter_map(of_line).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_available_bytes_are_read_from_the_system() {
        let meminfo = "MemTotal:       16 kB\nMemFree:         2 kB\nMemAvailable:    8 kB\nSwapFree:        1 kB\n";
        assert_eq!(system_bytes(meminfo), Some(9 * 1024));
        assert_eq!(system_bytes("MemTotal: 16 kB\n"), None);
        let limits = |space: &str, data: &str| {
            format!(
                "Limit   Soft Limit  Hard Limit  Units\nMax data size     {data}    unlimited   bytes\nMax address space         {space}           unlimited            bytes\n"
            )
        };
        let status = "Name:\tx\nVmSize:\t    4 kB\nVmData:\t    1 kB\n";
        let left = |space: &str, data: &str| process_bytes(&limits(space, data), status);
        assert_eq!(left("unlimited", "unlimited"), None);
        assert_eq!(left("10240", "unlimited"), Some(6 * 1024));
        assert_eq!(left("10240", "2048"), Some(1024));
        assert_eq!(left("1024", "unlimited"), Some(0));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_narrowest_control_group_counts() {
        let root = std::env::temp_dir().join(format!("tectum-groups-{}", std::process::id()));
        let write = |path: &str, text: &str| {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().expect("in the root")).expect("writable");
            std::fs::write(path, text).expect("writable");
        };
        let left = |groups: &str| control_group_bytes(groups, &root);
        assert_eq!(left("0::/a/b\n"), None);
        for (file, text) in [
            ("a/b/memory.max", "max\n"),
            ("a/b/memory.current", "500\n"),
            ("a/memory.max", "1000\n"),
            ("a/memory.current", "700\n"),
            ("a/memory.stat", "anon 5\ninactive_file 50\n"),
            ("memory.max", "2000\n"),
            ("memory.current", "1900\n"),
            ("memory/c/memory.limit_in_bytes", "90\n"),
            ("memory/c/memory.usage_in_bytes", "100\n"),
            (
                "memory/c/memory.stat",
                "inactive_file 1\ntotal_inactive_file 20\n",
            ),
        ] {
            write(file, text);
        }
        assert_eq!(left("0::/a/b\n"), Some(100));
        write("memory.current", "100\n");
        assert_eq!(left("0::/a/b\n"), Some(350));
        // A container does not see the folders above its own group.
        assert_eq!(left("0::/elsewhere\n"), Some(1900));
        assert_eq!(left("5:cpu,memory:/c\n4:cpu:/c\n"), Some(10));
        assert_eq!(left("4:cpu:/c\n"), None);
        std::fs::remove_dir_all(&root).expect("ours");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_has_memory_available() {
        let available = available_bytes().expect("Linux reports it");
        let total = total_bytes().expect("Linux reports it");
        assert!(available > 0 && total > 0);
        check("what fits", available / 2).expect("half of it is available");
        let error = check("what does not fit", available.saturating_mul(4)).expect_err("too much");
        assert_eq!(error.kind(), ErrorKind::OutOfMemory);
    }

    #[test]
    fn a_size_beyond_any_memory_is_refused_with_both_numbers() {
        let errors = [
            check("a", u64::MAX).expect_err("too much"),
            with_capacity::<u8>("a", usize::MAX).expect_err("too much"),
            filled("a", 0u64, usize::MAX / 8).expect_err("too much"),
            reserve("a", &mut vec![1u32], usize::MAX).expect_err("too much"),
        ];
        for error in errors {
            let text = error.to_string();
            assert_eq!(error.kind(), ErrorKind::OutOfMemory);
            assert!(
                text.starts_with("a: ")
                    && text.contains(" bytes of memory are needed, ")
                    && text.contains(" are available"),
                "{text}"
            );
        }
        let mut grown = Vec::new();
        for number in 0..1000u32 {
            push("a", &mut grown, number).expect("it fits");
        }
        assert_eq!(grown, (0..1000).collect::<Vec<_>>());
        assert_eq!(copied("a", &grown).expect("it fits"), grown);
    }

    #[test]
    fn sizes_of_arrays_saturate() {
        assert_eq!(array_bytes::<u64>(3), 24);
        assert_eq!(array_bytes::<u64>(usize::MAX), u64::MAX);
        assert_eq!(shape_bytes([2, 3], 4), 24);
        assert_eq!(shape_bytes([u64::MAX, u64::MAX, 2], 4), u64::MAX);
        assert_eq!(shape_bytes([u64::MAX, u64::MAX, 0], 4), 0);
        assert_eq!(shape_bytes([], 4), 4);
    }
}
