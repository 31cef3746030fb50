//! The example's kernels on the emulator, and on CUDA where there is a device.

use own_kernel::extremes;
use warpset_gpu::testing::devices;

#[test]
fn the_lowest_and_the_highest_are_found() {
    for seed in [1, 2] {
        for device in devices(seed) {
            assert_eq!(extremes(&device, &[]).unwrap(), None);
            assert_eq!(extremes(&device, &[7]).unwrap(), Some((7, 7)));
            assert_eq!(extremes(&device, &[5, u32::MAX, 0, 9]).unwrap(), Some((0, u32::MAX)));
            let many: Vec<u32> = (0..20_000u32).map(|i| i.wrapping_mul(0x9e37_79b9) / 3 + 5).collect();
            let expected = many.iter().min().copied().zip(many.iter().max().copied());
            assert_eq!(extremes(&device, &many).unwrap(), expected, "{device}");
        }
    }
}
