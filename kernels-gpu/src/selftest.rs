//! Small kernels that exercise every item of the kernel vocabulary, each with a
//! plain-Rust answer to compare with. They show that emulator and device agree.
use warpset_simt::shared::{self, Shared};
use warpset_simt::{Global, GlobalMut, atomic, fence, thread, unroll, warp};

kernel! {
    /// Computes `y[i] += a * x[i]`, wrapping.
    ///
    /// # Safety
    /// - Launch: 1-D, any shape.
    /// - `x`, `y`: valid for `n` words; nothing else accesses `y`, nothing writes `x`.
    #[launch_bounds(256)]
    pub unsafe fn saxpy(a: u32, x: Global<u32>, y: GlobalMut<u32>, n: usize) {
        for i in thread::grid_stride(n) {
            // SAFETY: `i < n`, and each `i` belongs to one thread.
            unsafe { y.write(i, y.read(i).wrapping_add(a.wrapping_mul(x.read_nc(i)))) };
        }
    }
}

kernel! {
    /// Computes the inclusive sum of each block's words, by warp scans and shared memory.
    ///
    /// # Safety
    /// - Launch: 1-D, blocks of a multiple of 32 threads, 128 bytes of shared memory.
    /// - `x`, `y`: valid for one word per thread; nothing writes `x`, nothing else accesses `y`.
    #[launch_bounds(1024, 1)]
    pub unsafe fn block_scan(x: Global<u32>, y: GlobalMut<u32>) {
        let sums: Shared<u32> = shared::dynamic(0);
        let i = thread::index_1d() as usize;
        let warp_id = thread::thread_idx_x() / 32;
        // SAFETY: one word per thread; whole warps; one shared word per warp, with a
        // barrier between the writes and the reads.
        unsafe {
            let sum = warp::inclusive_scan_add(warp::FULL_MASK, x.read(i));
            if warp::lane_id() == 31 {
                sums.set(warp_id, sum);
            }
            thread::sync_threads();
            let mut before = 0u32;
            for w in 0..warp_id {
                before = before.wrapping_add(sums.get(w));
            }
            y.write(i, before.wrapping_add(sum));
        }
    }
}

/// Words that [`warp_collectives`] writes for each thread.
pub const COLLECTIVES: usize = 25;

kernel! {
    /// Uses every warp collective, over all lanes and over the odd and even lanes apart.
    ///
    /// # Safety
    /// - Launch: 1-D, blocks of a multiple of 32 threads, no shared memory.
    /// - `x`: one word per thread, not written; `out`: [`COLLECTIVES`] words per thread, accessed by nothing else.
    pub unsafe fn warp_collectives(x: Global<u32>, out: GlobalMut<u32>) {
        let i = thread::index_1d() as usize;
        let lane = warp::lane_id();
        let all = warp::FULL_MASK;
        let half = 0x5555_5555 << (lane & 1);
        let to = out.at(i * COLLECTIVES);
        // SAFETY: whole warps take part; in the second part the lanes of each parity
        // name each other; `to` has `COLLECTIVES` words of this thread.
        unsafe {
            let v = x.read(i);
            let wide = u64::from(v) << 32 | u64::from(!v);
            to.write(0, warp::shuffle_idx(all, v, lane ^ 5));
            to.write(1, warp::shuffle_up(all, v, 3));
            to.write(2, warp::shuffle_down(all, v, 7));
            let swapped = warp::shuffle_xor(all, wide, 16);
            to.write(3, swapped as u32);
            to.write(4, (swapped >> 32) as u32);
            to.write(5, warp::ballot(all, v & 1 == 1));
            to.write(6, u32::from(warp::any(all, v % 64 == 3)));
            to.write(7, u32::from(warp::all(all, v % 64 != 3)));
            to.write(8, warp::match_any(all, v % 5));
            to.write(9, warp::match_any(all, wide % 3));
            to.write(10, warp::reduce_add(all, v));
            to.write(11, warp::reduce_min(all, v));
            to.write(12, warp::reduce_max(all, v));
            to.write(13, warp::reduce_and(all, v | 0xff));
            to.write(14, warp::reduce_or(all, v & 0xff00));
            to.write(15, warp::reduce_xor(all, v));
            to.write(20, warp::match_low_byte(all, (v % 5) | (v << 8)));
            let swapped = warp::shuffle_idx(all, u128::from(wide) << 64 | u128::from(wide / 3), lane ^ 9);
            for part in 0..4 {
                to.write(21 + part, (swapped >> (32 * part)) as u32);
            }
            warp::sync_warp(all);
            if lane & 1 == 0 {
                to.write(16, warp::reduce_add(half, v));
                to.write(17, warp::ballot(half, v & 2 == 2));
            } else {
                to.write(16, warp::reduce_max(half, v));
                to.write(17, warp::match_any(half, v % 2));
            }
            to.write(18, warp::lane_mask_lt() ^ warp::lane_mask_le() ^ warp::lane_mask_gt() ^ warp::lane_mask_eq());
            to.write(19, warp::warp_id() << 8 | u32::from(warp::active_mask() & warp::lane_mask_eq() != 0));
        }
    }
}

kernel! {
    /// Uses every atomic on global memory: 32-bit words in `a`, 64-bit in `b`, signed in `c`.
    ///
    /// # Safety
    /// - Launch: 1-D, any shape.
    /// - `a`: 8 words, `b`: 8 words, `c`: 4 words, only accessed by this launch.
    /// - `tickets`: one word per thread, zero at first, only accessed by this launch.
    pub unsafe fn global_atomics(a: GlobalMut<u32>, b: GlobalMut<u64>, c: GlobalMut<i32>, tickets: GlobalMut<u32>) {
        let i = thread::index_1d();
        let wide = u64::from(i) << 20;
        // SAFETY: the words are valid and accessed only by atomics; a ticket is below the number of threads.
        unsafe {
            let ticket = atomic::fetch_add(a, 1);
            atomic::reduce_add(tickets.at(ticket as usize), 1);
            atomic::reduce_or(a.at(1), 1 << (i % 32));
            atomic::reduce_and(a.at(2), !(1 << (i % 32)));
            atomic::reduce_xor(a.at(3), i);
            atomic::reduce_min(a.at(4), i + 7);
            atomic::reduce_max(a.at(5), i);
            let _ = atomic::exchange(a.at(6), 42);
            let mut seen = atomic::load_relaxed(a.at(7));
            loop {
                let old = atomic::compare_exchange(a.at(7), seen, seen.wrapping_add(3));
                if old == seen {
                    break;
                }
                seen = old;
            }
            let _ = atomic::fetch_add(b, wide);
            let _ = atomic::fetch_or(b.at(1), 1 << (i % 64));
            let _ = atomic::fetch_and(b.at(2), !(1 << (i % 64)));
            let _ = atomic::fetch_xor(b.at(3), wide);
            let _ = atomic::fetch_min(b.at(4), wide + 7);
            let _ = atomic::fetch_max(b.at(5), wide);
            let _ = atomic::exchange(b.at(6), 1 << 40);
            let mut seen = atomic::load_acquire(b.at(7));
            loop {
                let old = atomic::compare_exchange(b.at(7), seen, seen.wrapping_add(1 << 33));
                if old == seen {
                    break;
                }
                seen = old;
            }
            atomic::reduce_min(c, -(i as i32));
            atomic::reduce_max(c.at(1), -(i as i32) - 5);
            atomic::reduce_add(c.at(2), -1);
            atomic::store_relaxed(c.at(3), -9);
        }
    }
}

kernel! {
    /// Uses every atomic on shared memory; block `b` writes its 16 results to `out[16 b..]`.
    ///
    /// # Safety
    /// - Launch: 1-D, blocks of at least 16 threads, 128 bytes of shared memory.
    /// - `out`: 16 double words per block, accessed by nothing else.
    pub unsafe fn shared_atomics(out: GlobalMut<u64>) {
        let narrow: Shared<u32> = shared::dynamic(0);
        let wide: Shared<u64> = shared::dynamic(64);
        let t = thread::thread_idx_x();
        // SAFETY: both arrays have 16 or 8 elements inside the 128 bytes; barriers separate initialisation, atomics and
        // result.
        unsafe {
            if t < 8 {
                let one = if t == 2 || t == 4 { !0 } else { 0 };
                narrow.set(t, one);
                narrow.set(8 + t, 0);
                wide.set(t, if t == 2 || t == 4 { !0 } else { 0 });
            }
            thread::sync_threads();
            narrow.reduce_add(0, 1);
            let _ = narrow.fetch_add(8, 2);
            narrow.reduce_or(1, 1 << (t % 32));
            narrow.reduce_and(2, !(1 << (t % 32)));
            narrow.reduce_xor(3, t);
            narrow.reduce_min(4, t + 7);
            narrow.reduce_max(5, t);
            let _ = narrow.exchange(6, 42);
            let mut seen = narrow.get_volatile(7);
            loop {
                let old = narrow.compare_exchange(7, seen, seen + 3);
                if old == seen {
                    break;
                }
                seen = old;
            }
            let big = u64::from(t) << 32;
            let _ = wide.fetch_add(0, big);
            let _ = wide.fetch_or(1, 1 << (t % 64));
            let _ = wide.fetch_and(2, !(1 << (t % 64)));
            let _ = wide.fetch_xor(3, big);
            let _ = wide.fetch_min(4, big + 7);
            let _ = wide.fetch_max(5, big);
            wide.set_volatile(6, 1 << 40);
            wide.reduce_add(7, 1);
            thread::sync_threads();
            if t < 8 {
                let to = out.at(thread::block_idx_x() as usize * 16);
                to.write(t as usize, u64::from(narrow.get(t)) + (u64::from(narrow.get(8)) << 32));
                to.write(8 + t as usize, wide.get(t));
            }
        }
    }
}

/// Words of a tile of [`look_back_scan`], one per thread.
pub const TILE: u32 = 128;

kernel! {
    /// Computes the inclusive sum over the whole input in one pass, by decoupled look-back: a tile publishes its sum,
    /// then its prefix, and releases a flag after each.
    ///
    /// # Safety
    /// - Launch: 1-D, [`TILE`] threads per block, `n.div_ceil(TILE)` blocks, 32 bytes of shared memory.
    /// - `x`, `y`: `n` words; `sums`, `prefixes`, `flags`: one word per block, `flags` zero; `ticket`: one word, zero.
    ///   Nothing else accesses any.
    #[launch_bounds(128, 4)]
    pub unsafe fn look_back_scan(
        x: Global<u32>, y: GlobalMut<u32>, n: usize,
        sums: GlobalMut<u32>, prefixes: GlobalMut<u32>, flags: GlobalMut<u32>, ticket: GlobalMut<u32>,
    ) {
        let warps: Shared<u32> = shared::dynamic(0); // one sum per warp, then tile and prefix
        let t = thread::thread_idx_x();
        // SAFETY: indices below `n` or the number of tiles; six words of shared memory
        // with barriers between writes and reads; `sums` and `prefixes` are written
        // before a release of the flag and read after an acquire.
        unsafe {
            if t == 0 {
                warps.set(4, atomic::fetch_add(ticket, 1));
            }
            thread::sync_threads();
            let tile = warps.get(4) as usize;
            let i = tile * TILE as usize + t as usize;
            let sum = warp::inclusive_scan_add(warp::FULL_MASK, if i < n { x.read(i) } else { 0 });
            if warp::lane_id() == 31 {
                warps.set(t / 32, sum);
            }
            thread::sync_threads();
            if t == 0 {
                let [a, b, c, d] = warps.get4(0);
                let total = a.wrapping_add(b).wrapping_add(c).wrapping_add(d);
                sums.write(tile, total);
                atomic::store_release(flags.at(tile), 1);
                let mut prefix = 0u32;
                let mut back = tile;
                while back > 0 {
                    match atomic::load_relaxed(flags.at(back - 1)) {
                        0 => thread::spin_hint(),
                        flag => {
                            fence::device();
                            back -= 1;
                            if flag == 2 {
                                prefix = prefix.wrapping_add(prefixes.read(back));
                                break;
                            }
                            prefix = prefix.wrapping_add(sums.read(back));
                        }
                    }
                }
                prefixes.write(tile, prefix.wrapping_add(total));
                fence::device();
                atomic::store_relaxed(flags.at(tile), 2);
                warps.set(5, prefix);
            }
            thread::sync_threads();
            let mut before = warps.get(5);
            for w in 0..t / 32 {
                before = before.wrapping_add(warps.get(w));
            }
            if i < n {
                y.write(i, before.wrapping_add(sum));
            }
        }
    }
}

kernel! {
    /// Reverses each block's `per_block` words through shared memory of any size.
    ///
    /// # Safety
    /// - Launch: 1-D, `4 * per_block` bytes of shared memory, `per_block` a multiple of 4.
    /// - `x`, `y`: `per_block` words per block, 16-byte aligned; nothing writes `x` or touches `y`.
    pub unsafe fn reverse_in_shared(x: Global<u32>, y: GlobalMut<u32>, per_block: u32) {
        let tile: Shared<u32> = shared::dynamic(0);
        let base = thread::block_idx_x() as usize * per_block as usize;
        let stride = thread::block_dim_x() * 4;
        // SAFETY: all indices are below `per_block`; a barrier separates the phases.
        unsafe {
            let mut i = thread::thread_idx_x() * 4;
            while i < per_block {
                tile.set4(i, x.read4_nc(base + i as usize));
                i += stride;
            }
            thread::sync_threads();
            let mut i = thread::thread_idx_x() * 4;
            while i < per_block {
                let [a, b, c, d] = tile.get4(per_block - 4 - i);
                y.write4(base + i as usize, [d, c, b, a]);
                i += stride;
            }
        }
    }
}

kernel! {
    /// Tests barriers that count and vote, vector accesses of 64-bit words, narrow words in shared memory, prefetch,
    /// `opaque`, `unroll!`, two- and three-dimensional indices.
    ///
    /// # Safety
    /// - Launch: blocks of (8, 4, 2), any grid, 64 bytes of shared memory.
    /// - `x`: two words per thread in linear order, not written; `out`: eight words per thread, accessed by nothing
    ///   else.
    pub unsafe fn odds_and_ends(x: Global<u64>, out: GlobalMut<u64>) {
        use thread::{block_dim_x, block_dim_y, block_dim_z, block_idx_x, block_idx_y, block_idx_z};
        use thread::{grid_dim_x, grid_dim_y, grid_dim_z, thread_idx_x, thread_idx_y, thread_idx_z};
        let in_block = thread_idx_x() + block_dim_x() * (thread_idx_y() + block_dim_y() * thread_idx_z());
        let block = block_idx_x() + grid_dim_x() * (block_idx_y() + grid_dim_y() * block_idx_z());
        let i = (block * (block_dim_x() * block_dim_y() * block_dim_z()) + in_block) as usize;
        let to = out.at(i * 8);
        let bytes: Shared<u8> = shared::dynamic(0);
        // SAFETY: two words of `x` and eight of `out` belong to this thread, both
        // 16-byte aligned; 64 bytes of shared memory, one per thread, with barriers between.
        unsafe {
            x.prefetch_l2(i * 2);
            let [a, b] = x.read2(i * 2);
            let [c, d] = x.read2_nc(i * 2);
            to.write2(0, [a.wrapping_add(d), b ^ c]);
            to.write(2, u64::from(thread::sync_threads_count(a & 1 == 1)));
            to.write(3, u64::from(thread::sync_threads_and(a != b)));
            to.write(4, u64::from(thread::sync_threads_or(a == b)));
            bytes.set(in_block, a as u8);
            thread::sync_threads();
            to.write(5, u64::from(bytes.get(63 - in_block)));
            let mut sum = 0u32;
            unroll!(8, j, {
                sum += warpset_simt::opaque(a as u32 & 0xff) << j;
            });
            to.write(6, u64::from(sum));
            fence::block();
            to.write(7, u64::from(block) << 40 | u64::from(grid_dim_z()) << 32 | u64::from(shared::dynamic_bytes()));
        }
    }
}

kernel! {
    /// Uses signed and 64-bit forms: shuffles of wide words and floats, signed atomics in both memories, narrow signed
    /// words, casts, the device fence, delays.
    ///
    /// # Safety
    /// - Launch: 1-D, one block of 32 threads, 128 bytes of shared memory.
    /// - `x`: one word per thread, not written; `sums`: four words; `out`: four words per thread; accessed by nothing
    ///   else.
    pub unsafe fn signed_and_wide(x: Global<i64>, sums: GlobalMut<i64>, out: GlobalMut<i64>) {
        let wide: Shared<i64> = shared::dynamic(0);
        let narrow: Shared<i16> = shared::dynamic(64);
        let t = thread::thread_idx_x();
        let to = out.at(t as usize * 4);
        // SAFETY: one warp; 8 wide words and 32 narrow ones in shared memory, with barriers
        // between initialisation, atomics and results; the rest is this thread's.
        unsafe {
            let v = x.read_nc(t as usize);
            let start = thread::clock();
            thread::nanosleep(1);
            if thread::clock().wrapping_sub(start) > 1 << 31 {
                thread::trap();
            }
            to.write(0, warp::shuffle_xor(warp::FULL_MASK, v, 3));
            let third = warp::shuffle_down(warp::FULL_MASK, v as f64 / 4.0, 1);
            let fourth = warp::shuffle_up(warp::FULL_MASK, v as f32, 1);
            to.write(1, (third * 4.0) as i64 + fourth as i64);
            if t < 2 {
                wide.set(t, 0);
            }
            narrow.set(t, v as i16);
            thread::sync_threads();
            let _ = wide.fetch_min(0, v);
            wide.reduce_max(1, v);
            to.write(2, i64::from(narrow.get(31 - t)));
            thread::sync_threads();
            to.write(3, wide.get(t % 2));
            atomic::reduce_min(sums, v);
            atomic::reduce_max(sums.at(1), v);
            atomic::reduce_add(sums.at(2), v);
            fence::device();
            atomic::reduce_or(sums.cast::<u64>().at(3), 1 << t);
        }
    }
}

#[cfg(all(test, not(target_arch = "nvptx64")))]
mod tests;
