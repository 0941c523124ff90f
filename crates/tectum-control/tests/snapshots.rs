//! Snapshots compared with the format's own library.

use std::collections::HashMap;

use safetensors::SafeTensors;
use safetensors::tensor::TensorView;
use tectum::snapshot::{Array, Snapshot};

#[test]
fn a_snapshot_has_the_bytes_of_the_formats_own_library() {
    let mut snapshot = Snapshot::default();
    for (name, array) in [
        ("zeta", Array::F32(vec![1.0, f32::NAN, -0.0])),
        ("alpha", Array::U32(vec![7, u32::MAX])),
        ("a \"name\" \\ ü\n", Array::F64(vec![std::f64::consts::PI])),
        ("empty", Array::F32(Vec::new())),
        ("tick", Array::U64(vec![u64::MAX, 0])),
        ("beta", Array::F64(vec![0.5; 3])),
    ] {
        snapshot.insert(name, array);
        let bytes = snapshot.to_bytes();
        let read = SafeTensors::deserialize(&bytes).expect("a safetensors file");
        let views: Vec<(String, TensorView<'_>)> = read.tensors();
        let (_, header) = SafeTensors::read_metadata(&bytes).expect("a header");
        let metadata: Option<HashMap<String, String>> = header.metadata().clone();
        assert_eq!(
            safetensors::serialize(views, metadata).expect("plain arrays"),
            bytes,
            "{name}"
        );
    }
}
