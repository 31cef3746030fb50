//! The selftest kernels in the emulator, against plain-Rust answers.
use super::*;
use warpset_simt::emulator::{Config, Emulator};
use warpset_simt::{Dim3, LaunchConfig};

/// Runs a test under a few schedules, with detection and without.
fn emulators() -> impl Iterator<Item = Emulator> {
    (0..4).map(Config::seeded).chain([Config::fast()]).map(Emulator::new)
}

fn words(n: u32) -> Vec<u32> {
    (0..n).map(|i| i.wrapping_mul(0x9e37_79b9) >> 7).collect()
}

fn prefix_sums(x: &[u32]) -> Vec<u32> {
    let add = |sum: &mut u32, x: &u32| {
        *sum = sum.wrapping_add(*x);
        Some(*sum)
    };
    x.iter().scan(0, add).collect()
}

#[test]
fn saxpy_is_its_formula() {
    let x = words(1000);
    for emulator in emulators() {
        let (dx, dy) = (emulator.buffer_from(&x), emulator.buffer_from(&x));
        // SAFETY: 1000 words in both.
        unsafe {
            saxpy { a: 7, x: dx.global(), y: dy.global_mut(), n: 1000 }.launch(&emulator, LaunchConfig::new(3, 64))
        }
        .unwrap();
        assert!(dy.to_vec().iter().zip(&x).all(|(y, x)| *y == x.wrapping_mul(8)));
    }
}

#[test]
fn block_scan_sums_each_block() {
    let x = words(3 * 1024);
    for emulator in emulators() {
        let (dx, dy) = (emulator.buffer_from(&x), emulator.buffer(x.len()));
        let config = LaunchConfig::new(3, 1024).shared(128);
        // SAFETY: one word per thread in both.
        unsafe { block_scan { x: dx.global(), y: dy.global_mut() }.launch(&emulator, config) }.unwrap();
        let expected: Vec<u32> = x.chunks(1024).flat_map(prefix_sums).collect();
        assert!(dy.to_vec() == expected);
    }
}

/// Returns the expected results of `warp_collectives` for the lanes of one warp.
fn collectives_of(x: &[u32]) -> Vec<u32> {
    let mask_of = |f: &dyn Fn(usize) -> bool| (0..32).filter(|&l| f(l)).fold(0u32, |m, l| m | 1 << l);
    let fold = |f: fn(u32, u32) -> u32, g: fn(u32) -> u32| x.iter().map(|&v| g(v)).reduce(f).unwrap();
    let wide: Vec<u64> = x.iter().map(|&v| u64::from(v) << 32 | u64::from(!v)).collect();
    let mut out = Vec::new();
    for l in 0..32usize {
        let v = x[l];
        let parity = |m: usize| m % 2 == l % 2;
        let half = x.iter().enumerate().filter(|(m, _)| parity(*m)).map(|(_, v)| *v);
        out.extend([
            x[l ^ 5],
            x[l.checked_sub(3).unwrap_or(l)],
            x[if l + 7 < 32 { l + 7 } else { l }],
            wide[l ^ 16] as u32,
            (wide[l ^ 16] >> 32) as u32,
            mask_of(&|m| x[m] & 1 == 1),
            u32::from(x.iter().any(|v| v % 64 == 3)),
            u32::from(x.iter().all(|v| v % 64 != 3)),
            mask_of(&|m| x[m] % 5 == v % 5),
            mask_of(&|m| wide[m] % 3 == wide[l] % 3),
            fold(u32::wrapping_add, |v| v),
            fold(u32::min, |v| v),
            fold(u32::max, |v| v),
            fold(|a, b| a & b, |v| v | 0xff),
            fold(|a, b| a | b, |v| v & 0xff00),
            fold(|a, b| a ^ b, |v| v),
            if l % 2 == 0 { half.reduce(u32::wrapping_add).unwrap() } else { half.max().unwrap() },
            if l % 2 == 0 {
                mask_of(&|m| parity(m) && x[m] & 2 == 2)
            } else {
                mask_of(&|m| parity(m) && x[m] % 2 == v % 2)
            },
            !(1 << l) ^ (1 << l) ^ ((1 << l) - 1) ^ ((1 << l) - 1),
        ]);
        out.push(1);
        out.push(mask_of(&|m| x[m] % 5 == v % 5));
        let swapped = wide[l ^ 9];
        out.extend([swapped / 3, swapped].iter().flat_map(|&half| [half as u32, (half >> 32) as u32]));
    }
    out
}

#[test]
fn warp_collectives_are_their_definitions() {
    let x = words(128);
    let expected: Vec<u32> = x
        .chunks(32)
        .enumerate()
        .flat_map(|(warp, x)| {
            let mut out = collectives_of(x);
            // The order of lanes' masks: below, up to, above, own; all cancel but the pairs.
            for (l, lane) in out.chunks_mut(COLLECTIVES).enumerate() {
                let own = 1u32 << l;
                lane[18] = (own - 1) ^ (own | (own - 1)) ^ !(own | (own - 1)) ^ own;
                lane[19] |= (warp as u32 % 2) << 8;
            }
            out
        })
        .collect();
    for emulator in emulators() {
        let (dx, out) = (emulator.buffer_from(&x), emulator.buffer(128 * COLLECTIVES));
        // SAFETY: one word per thread, and `COLLECTIVES` results.
        unsafe {
            warp_collectives { x: dx.global(), out: out.global_mut() }.launch(&emulator, LaunchConfig::new(2, 64))
        }
        .unwrap();
        assert!(out.to_vec() == expected);
    }
}

#[test]
fn global_atomics_lose_no_update() {
    let n = 3 * 96u32;
    for emulator in emulators() {
        let a = emulator.buffer_from(&[0, 0, !0, 0, !0, 0, 0, 5]);
        let b = emulator.buffer_from(&[0, 0, !0, 0, !0, 0, 0, 5u64]);
        let c = emulator.buffer_from(&[0, i32::MIN, 0, 0]);
        let tickets = emulator.buffer_from(&vec![0u32; n as usize]);
        let config = LaunchConfig::new(3, 96);
        // SAFETY: the sizes are those that the kernel asks for.
        unsafe {
            global_atomics { a: a.global_mut(), b: b.global_mut(), c: c.global_mut(), tickets: tickets.global_mut() }
                .launch(&emulator, config)
        }
        .unwrap();
        let xor = (0..n).fold(0, |x, i| x ^ i);
        let sum: u64 = (0..n).map(u64::from).sum();
        assert_eq!(a.to_vec(), [n, !0, 0, xor, 7, n - 1, 42, 5 + 3 * n]);
        let wide = |i: u32| u64::from(i) << 20;
        assert_eq!(b.to_vec(), [sum << 20, !0, 0, wide(xor), 7, wide(n - 1), 1 << 40, 5 + (u64::from(n) << 33)]);
        assert_eq!(c.to_vec(), [1 - n as i32, -5, -(n as i32), -9]);
        assert!(tickets.to_vec().iter().all(|&t| t == 1));
    }
}

#[test]
fn shared_atomics_lose_no_update() {
    let n = 64u64;
    for emulator in emulators() {
        let out = emulator.buffer(32);
        let config = LaunchConfig::new(2, n as u32).shared(128);
        // SAFETY: 16 results per block.
        unsafe { shared_atomics { out: out.global_mut() }.launch(&emulator, config) }.unwrap();
        let added = (2 * n) << 32;
        let xor = (0..n).fold(0, |x, i| x ^ i);
        let sum: u64 = (0..n).sum();
        let narrow = [n, 0xffff_ffff, 0, xor, 7, n - 1, 42, 3 * n].map(|v| v + added);
        let wide = [sum << 32, !0, 0, xor << 32, 7, (n - 1) << 32, 1 << 40, n];
        assert_eq!(out.to_vec(), [narrow, wide, narrow, wide].concat());
    }
}

#[test]
fn look_back_scan_sums_everything() {
    for n in [1usize, 127, 128, 5 * 128 + 17, 40 * 128] {
        let x = words(n as u32);
        for emulator in emulators() {
            let blocks = n.div_ceil(TILE as usize);
            let dx = emulator.buffer_from(&x);
            let (y, sums, prefixes) = (emulator.buffer(n), emulator.buffer(blocks), emulator.buffer(blocks));
            let (flags, ticket) = (emulator.buffer_from(&vec![0u32; blocks]), emulator.buffer_from(&[0u32]));
            let config = LaunchConfig::new(blocks as u32, TILE).shared(32);
            // SAFETY: the sizes are those that the kernel asks for; flags and ticket are zero.
            unsafe {
                look_back_scan {
                    x: dx.global(),
                    y: y.global_mut(),
                    n,
                    sums: sums.global_mut(),
                    prefixes: prefixes.global_mut(),
                    flags: flags.global_mut(),
                    ticket: ticket.global_mut(),
                }
                .launch(&emulator, config)
            }
            .unwrap();
            assert_eq!(y.to_vec(), prefix_sums(&x), "n = {n}");
        }
    }
}

#[test]
fn shared_memory_past_48_kilobytes() {
    let per_block = 25 << 10;
    let x = words(2 * per_block);
    for emulator in emulators() {
        let (dx, dy) = (emulator.buffer_from(&x), emulator.buffer(x.len()));
        let config = LaunchConfig::new(2, 256).shared(4 * per_block);
        // SAFETY: `per_block` words per block.
        unsafe { reverse_in_shared { x: dx.global(), y: dy.global_mut(), per_block }.launch(&emulator, config) }
            .unwrap();
        let expected: Vec<u32> = x.chunks(per_block as usize).flat_map(|b| b.iter().rev().copied()).collect();
        assert!(dy.to_vec() == expected);
    }
}

#[test]
fn odds_and_ends_are_their_definitions() {
    let x: Vec<u64> = words(12 * 64 * 2).into_iter().map(|v| u64::from(v) * 0x1_0000_0003).collect();
    let expected: Vec<u64> = x
        .chunks(128)
        .enumerate()
        .flat_map(|(block, x)| {
            let odd = x.iter().step_by(2).filter(|a| **a & 1 == 1).count() as u64;
            let equal = x.chunks(2).filter(|ab| ab[0] == ab[1]).count();
            (0..64).flat_map(move |t| {
                let [a, b] = [x[2 * t], x[2 * t + 1]];
                [
                    a.wrapping_add(b),
                    a ^ b,
                    odd,
                    u64::from(equal == 0),
                    u64::from(equal > 0),
                    x[2 * (63 - t)] & 0xff,
                    (a & 0xff) * 255,
                    (block as u64) << 40 | 2 << 32 | 64,
                ]
            })
        })
        .collect();
    for emulator in emulators() {
        let (dx, out) = (emulator.buffer_from(&x), emulator.buffer(12 * 64 * 8));
        let config = LaunchConfig::new(Dim3::new(3, 2, 2), Dim3::new(8, 4, 2)).shared(64);
        // SAFETY: two words per thread, and eight results.
        unsafe { odds_and_ends { x: dx.global(), out: out.global_mut() }.launch(&emulator, config) }.unwrap();
        assert!(out.to_vec() == expected);
    }
}

#[test]
fn signed_and_wide_forms_are_their_definitions() {
    let x: Vec<i64> = (0..32).map(|i| (i * 7919 % 200 - 100) * 4).collect();
    let (least, most) = (*x.iter().min().unwrap(), *x.iter().max().unwrap());
    let expected: Vec<i64> = (0..32usize)
        .flat_map(|t| {
            let float = x[(t + 1).min(31)] + x[t.saturating_sub(1)];
            [x[t ^ 3], float, i64::from(x[31 - t] as i16), if t % 2 == 0 { least } else { most }]
        })
        .collect();
    for emulator in emulators() {
        let (dx, sums, out) = (emulator.buffer_from(&x), emulator.buffer_from(&[0i64; 4]), emulator.buffer(128));
        let config = LaunchConfig::new(1, 32).shared(128);
        // SAFETY: the sizes are those that the kernel asks for.
        unsafe {
            signed_and_wide { x: dx.global(), sums: sums.global_mut(), out: out.global_mut() }.launch(&emulator, config)
        }
        .unwrap();
        assert!(out.to_vec() == expected);
        assert_eq!(sums.to_vec(), [least, most, x.iter().sum(), 0xffff_ffff]);
    }
}
