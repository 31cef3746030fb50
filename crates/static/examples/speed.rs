use std::time::Instant;
use warpset_static::{StaticMap, StaticSet};
fn key(i: u64) -> u64 {
    let mut h = i.wrapping_add(1).wrapping_mul(0x9e3779b97f4a7c15);
    h ^= h >> 32;
    h = h.wrapping_mul(0xd6e8feb86659fd93);
    h ^= h >> 32;
    h
}
#[cfg(feature = "gpu")]
fn gpu() {
    use warpset_primitives::DeviceFilter;
    let device = warpset_gpu::Device::cuda(0).unwrap();
    println!("{} L2 {}", device, device.properties().l2_bytes);
    for n in [2_000_000usize, 4_000_000, 10_000_000, 30_000_000, 100_000_000] {
        let keys: Vec<u64> = (0..n as u64).map(key).collect();
        let absent: Vec<u64> = (0..n as u64).map(|i| key(!i)).collect();
        let (keys, absent) = (device.from_slice(&keys).unwrap(), device.from_slice(&absent).unwrap());
        let mut times = vec![];
        let mut set = None;
        for _ in 0..4 {
            set = None;
            device.synchronize().unwrap();
            let t = Instant::now();
            set = Some(StaticSet::<u64>::builder().on(&device).build_from_device(keys.as_slice()).unwrap());
            times.push(t.elapsed().as_secs_f64());
        }
        let set = set.unwrap();
        times.sort_by(f64::total_cmp);
        println!("n={n} build {:.2} G/s seed {}", n as f64 / times[1] / 1e9, set.seed());
        let stream = device.new_stream().unwrap();
        let mut out = device.alloc_uninit::<u8>(n).unwrap();
        let (a, b) = (device.new_event().unwrap(), device.new_event().unwrap());
        for once in ["0", "1"] {
            for (name, keys) in [("hit", &keys), ("miss", &absent)] {
                unsafe { std::env::set_var("WARPSET_ONCE", once) };
                let mut times = vec![];
                for _ in 0..7 {
                    a.record(&stream).unwrap();
                    unsafe { set.contains_async(&stream, keys.as_slice(), out.as_mut_slice()).unwrap() };
                    b.record(&stream).unwrap();
                    times.push(b.elapsed_ms(&a).unwrap() as f64 * 1e-3);
                }
                times.sort_by(f64::total_cmp);
                println!("  once={once} {name} {:.2} G/s", n as f64 / times[3] / 1e9);
            }
        }
    }
}
fn main() {
    #[cfg(feature = "gpu")]
    if std::env::args().nth(1).unwrap() == "gpu" {
        return gpu();
    }
    let n: u64 = std::env::args().nth(1).unwrap().parse().unwrap();
    let threads: usize = std::env::args().nth(2).unwrap().parse().unwrap();
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(|| {
        let keys: Vec<u64> = (0..n).map(key).collect();
        let t = Instant::now();
        let set = StaticSet::builder().build_from(&keys).unwrap();
        println!(
            "build {:.1} ns/key, seed {}, {:.2} bits/key load {:.3}",
            t.elapsed().as_nanos() as f64 / n as f64,
            set.seed(),
            set.bits_per_key(),
            set.load_factor()
        );
        let mut out = vec![0u8; keys.len()];
        for _ in 0..2 {
            let mut q: Vec<u64> = (0..n).map(|i| key(i.wrapping_mul(0x5851f42d4c957f2d) % (n))).collect();
            let t = Instant::now();
            set.contains_bytes_bulk_into(&q, &mut out).unwrap();
            println!(
                "hits {:.2} ns; found {}",
                t.elapsed().as_nanos() as f64 / n as f64,
                out.iter().map(|&b| b as u64).sum::<u64>()
            );
            q.iter_mut().for_each(|k| *k = key(*k));
            let t = Instant::now();
            set.contains_bytes_bulk_into(&q, &mut out).unwrap();
            println!(
                "misses {:.2} ns; found {}",
                t.elapsed().as_nanos() as f64 / n as f64,
                out.iter().map(|&b| b as u64).sum::<u64>()
            );
            let t = Instant::now();
            let c = q.iter().filter(|&&k| set.contains(k)).count();
            println!("one by one misses {:.2} ns; {c}", t.elapsed().as_nanos() as f64 / n as f64);
        }
        if n <= 20_000_000 {
            let narrow: Vec<u32> = keys.iter().map(|&k| (k >> 32) as u32).collect();
            let t = Instant::now();
            let map = StaticMap::<u32, u64>::builder().build_from(&narrow, &keys).unwrap();
            println!(
                "map build {:.1} ns/key, seed {}, {:.2} bits/key load {:.3} len {}",
                t.elapsed().as_nanos() as f64 / n as f64,
                map.seed(),
                map.bits_per_key(),
                map.load_factor(),
                map.len()
            );
            let mut v = vec![0u64; keys.len()];
            let t = Instant::now();
            let b = map.get_bulk_into(&narrow, &mut v).unwrap();
            println!("map get {:.2} ns; found {}", t.elapsed().as_nanos() as f64 / n as f64, b.count_ones());
        }
    });
}
