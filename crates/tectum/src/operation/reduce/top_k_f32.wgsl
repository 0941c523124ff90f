// The k greatest candidates of each chunk of 1,024, in order: greater first, NaN before all, ties by lower column.
// in: x [rows, cols] (and the candidates' columns after the first round); out: values and columns [rows, chunks, k];
// places without an element hold -inf and 0xffffffff. One workgroup sorts one chunk (bitonic, 12 KiB). Exact.
var<workgroup> keys: array<u32, 1024>;
var<workgroup> places: array<u32, 1024>;
var<workgroup> named: array<u32, 1024>;

// Whether slot a is to stand before slot b.
fn before(a: u32, b: u32) -> bool {
    return keys[a] > keys[b] || (keys[a] == keys[b] && named[a] < named[b]);
}

@compute @workgroup_size(256)
fn main(
    @builtin(local_invocation_index) lane: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    for (var item = group.x; item < params.rows * params.chunks; item += groups.x) {
        let row = item / params.chunks;
        let start = (item % params.chunks) * 1024u;
        for (var slot = lane; slot < 1024u; slot += 256u) {
            let i = start + slot;
            var key = 0u;
            var column = 0xffffffffu;
            if i < params.cols {
                column = CANDIDATE_COLUMN;
                if column != 0xffffffffu {
                    key = tectum_order_key(x[row * params.cols + i]);
                }
            }
            keys[slot] = key;
            places[slot] = i;
            named[slot] = column;
        }
        workgroupBarrier();
        for (var size = 2u; size <= 1024u; size *= 2u) {
            for (var step = size / 2u; step > 0u; step /= 2u) {
                for (var pair = lane; pair < 512u; pair += 256u) {
                    let a = 2u * pair - (pair & (step - 1u));
                    let b = a + step;
                    let descending = (a & size) == 0u;
                    if before(b, a) == descending {
                        let key = keys[a];
                        let place = places[a];
                        let column = named[a];
                        keys[a] = keys[b];
                        places[a] = places[b];
                        named[a] = named[b];
                        keys[b] = key;
                        places[b] = place;
                        named[b] = column;
                    }
                }
                workgroupBarrier();
            }
        }
        for (var place = lane; place < params.k; place += 256u) {
            let out = item * params.k + place;
            var value = 0.0;
            if named[place] == 0xffffffffu {
                var lowest = 0xff800000u;
                value = bitcast<f32>(lowest);
            } else {
                value = x[row * params.cols + places[place]];
            }
            values[out] = value;
            columns[out] = named[place];
        }
        workgroupBarrier();
    }
}
