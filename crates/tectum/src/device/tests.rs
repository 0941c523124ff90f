//! Tests of the pool, through buffers of the null device.

use super::*;

#[test]
fn buckets_hold_the_size_and_waste_at_most_a_fifth() {
    for bytes in (1..5000).chain([1 << 20, (1 << 20) + 1, 123_456_789]) {
        let bucket = bucket(bytes).expect("a size that there is");
        assert!(
            bucket >= bytes && bucket.is_multiple_of(256),
            "{bytes} → {bucket}"
        );
        assert!(
            bytes <= 1024 || bucket * 4 <= bytes * 5,
            "{bytes} → {bucket}"
        );
    }
}

#[test]
fn freed_memory_is_reused_and_counted_once() {
    let device = Device::null_with_capacity(1 << 20);
    let first = device.buffer::<f32>(1000).expect("fits");
    let copy = first.clone();
    drop(first);
    assert_eq!(device.pool().stats().live_count, 1);
    drop(copy);
    let stats = device.pool().stats();
    assert_eq!(
        (stats.live_count, stats.live_bytes, stats.pooled_count),
        (0, 0, 1)
    );
    let _second = device.buffer::<f32>(1000).expect("fits");
    let stats = device.pool().stats();
    assert_eq!((stats.hits, stats.misses, stats.pooled_count), (1, 1, 0));
}

#[test]
fn the_least_recently_freed_is_evicted_first() {
    let device = Device::null_with_capacity(1 << 20);
    device.pool().set_caps(PoolCaps {
        pooled_count: 2,
        ..PoolCaps::default()
    });
    let buffers: Vec<_> = [1000, 2000, 3000]
        .map(|len| device.buffer::<f32>(len).expect("fits"))
        .into();
    drop(buffers);
    assert_eq!(device.pool().stats().evictions, 1);
    let _kept = device.buffer::<f32>(2000).expect("fits");
    let _evicted = device.buffer::<f32>(1000).expect("fits");
    let stats = device.pool().stats();
    assert_eq!((stats.hits, stats.misses), (1, 4));
}

#[test]
fn running_out_trims_retries_then_fails_with_the_numbers() {
    let device = Device::null_with_capacity(10_240);
    drop(device.buffer::<f32>(2000).expect("fits"));
    let held = device.buffer::<f32>(1500).expect("fits after a trim");
    assert_eq!(device.pool().stats().trims, 1);
    let error = device
        .buffer::<f32>(2000)
        .expect_err("8 KB do not fit next to 6 KB in 10 KB");
    assert_eq!(error.kind(), ErrorKind::OutOfMemory);
    let text = error.to_string();
    assert!(
        text.contains("8192 bytes requested")
            && text.contains("6144 live")
            && text.contains("10240"),
        "{text}"
    );
    drop(held);
    device.buffer::<f32>(2000).expect("fits again");
}

#[test]
fn defect_17_several_threads_do_not_pass_the_cap_on_live_bytes_together() {
    let device = Device::null_with_capacity(1 << 40);
    device.pool().set_caps(PoolCaps {
        live_bytes: 300 << 20,
        ..PoolCaps::default()
    });
    let (barrier, is_over) = (
        std::sync::Barrier::new(17),
        std::sync::atomic::AtomicBool::new(false),
    );
    let held: Vec<_> = std::thread::scope(|scope| {
        let one = || {
            barrier.wait();
            (0..8)
                .filter_map(|_| device.pool().acquire(16 << 20, Role::Device).ok())
                .collect::<Vec<_>>()
        };
        let watcher = scope.spawn(|| {
            barrier.wait();
            while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                let stats = device.pool().stats();
                assert!(stats.peak_bytes >= stats.live_bytes, "{stats:?}");
            }
        });
        let threads: Vec<_> = (0..16).map(|_| scope.spawn(one)).collect();
        let joined: Vec<_> = threads.into_iter().map(|thread| thread.join()).collect();
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        watcher
            .join()
            .expect("the maximum is never below what is live");
        joined
            .into_iter()
            .flat_map(|held| held.expect("no panic"))
            .collect()
    });
    let stats = device.pool().stats();
    assert_eq!(
        (held.len(), stats.live_bytes, stats.peak_bytes),
        (18, 288 << 20, 288 << 20)
    );
    drop(held);
    assert_eq!(device.pool().stats().live_bytes, 0);
}

#[test]
fn the_cap_on_live_bytes_holds() {
    let device = Device::null_with_capacity(1 << 20);
    device.pool().set_caps(PoolCaps {
        live_bytes: 4096,
        ..PoolCaps::default()
    });
    let _half = device.buffer::<f32>(512).expect("fits");
    assert_eq!(
        device.buffer::<f32>(1024).expect_err("over the cap").kind(),
        ErrorKind::OutOfMemory
    );
}
