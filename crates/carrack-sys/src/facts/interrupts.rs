//! Which processors the interrupts of each interface come to: of each its number, how often it came, the processors,
//! and its name, a line each. The whole table of a large host has megabytes; this is what it says of interfaces.

use std::collections::BTreeMap;

use super::{About, FactText, Gatherer};

/// A column for each processor and a row for each interrupt: no host has more.
const TABLE_BYTES: u64 = 16 << 20;
/// Where the interrupts of a card stand; of a virtual one, at the slot that it is in.
const PLACES: [&str; 2] = ["device/msi_irqs", "device/../msi_irqs"];

pub(super) fn gather(facts: &mut Gatherer, _: About<'_>) {
    let table = facts.read_up_to("proc/interrupts", TABLE_BYTES);
    let rows = match &table {
        Ok(table) => rows(table),
        Err(_) => BTreeMap::new(),
    };
    for name in facts.interfaces() {
        let place =
            |at: &&str| Some(facts.entries(&format!("sys/class/net/{name}/{at}"))).filter(|all| !all.is_empty());
        let Some(numbers) = PLACES.iter().find_map(place) else { continue };
        let mut numbers: Vec<u32> = numbers.iter().filter_map(|number| number.parse().ok()).collect();
        numbers.sort_unstable();
        let line = |number: &u32| {
            let (count, name) = rows.get(number)?;
            Some(format!("{number} {count} {} {name}", processors(facts, *number)?))
        };
        let lines: Vec<String> = numbers.iter().filter_map(line).collect();
        let text = match (lines.is_empty(), &table) {
            (false, _) => FactText::Found(lines.join("\n")),
            (true, Ok(_)) => FactText::Absent,
            (true, Err(error)) => std::io::Error::from(error.kind()).into(),
        };
        facts.put(format!("interrupts/{name}"), text);
    }
}

/// Of each numbered interrupt how often it came, and its name.
fn rows(table: &str) -> BTreeMap<u32, (u64, &str)> {
    let mut lines = table.lines();
    let processors = lines.next().unwrap_or_default().split_whitespace().count();
    let row = |line: &'_ str| -> Option<(u32, u64)> {
        let (number, rest) = line.split_once(':')?;
        let counts = rest.split_whitespace().take(processors).map_while(|word| word.parse::<u64>().ok());
        Some((number.trim().parse().ok()?, counts.fold(0, u64::saturating_add)))
    };
    lines
        .filter_map(|line| {
            let ((number, count), name) = (row(line)?, line.split_whitespace().next_back()?);
            Some((number, (count, name)))
        })
        .collect()
}

/// The processors that an interrupt comes to: what the kernel made of those that it may come to.
fn processors(facts: &Gatherer, number: u32) -> Option<String> {
    let of = |file: &str| facts.read(&format!("proc/irq/{number}/{file}")).ok();
    let said = ["effective_affinity_list", "smp_affinity_list"].into_iter().filter_map(of);
    said.map(|text| text.trim().to_owned()).find(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::super::tests::put;
    use super::*;

    #[test]
    fn interrupts_are_those_of_the_card_with_their_counts_and_processors() {
        let root = tempfile::tempdir().unwrap();
        let table = "            CPU0       CPU1\n  9:          5          0  IO-APIC   9-fasteoi   acpi\n \
                     120:          1          2  PCI-MSI 1-edge      eth0-TxRx-0\n \
                     121:         30         40  PCI-MSI 2-edge      eth0-TxRx-1\nNMI:          7          7   Non-maskable\n";
        put(root.path(), "proc/interrupts", table);
        for number in ["120", "121", "122"] {
            put(root.path(), &format!("sys/class/net/eth0/device/msi_irqs/{number}"), "msix\n");
        }
        put(root.path(), "proc/irq/120/effective_affinity_list", "\n");
        put(root.path(), "proc/irq/120/smp_affinity_list", "0-1\n");
        put(root.path(), "proc/irq/121/effective_affinity_list", "1\n");
        put(root.path(), "proc/irq/121/smp_affinity_list", "0-1\n");
        // A virtual card: its slot has them.
        put(root.path(), "sys/class/net/eth1/device/driver", "");
        put(root.path(), "sys/class/net/eth1/msi_irqs", "none of the slot's");
        put(root.path(), "sys/class/net/lo/mtu", "65536\n");
        let mut facts = Gatherer::at(root.path());
        gather(&mut facts, About::default());
        let told = "120 3 0-1 eth0-TxRx-0\n121 70 1 eth0-TxRx-1".to_owned();
        assert_eq!(facts.texts, [("interrupts/eth0".to_owned(), FactText::Found(told))]);
    }

    #[test]
    fn interrupts_of_a_virtual_card_stand_at_its_slot() {
        let root = tempfile::tempdir().unwrap();
        put(root.path(), "proc/interrupts", "   CPU0\n 37:   4   PCI-MSIX-0000:00:02.0 0-edge  virtio1-input.0\n");
        put(root.path(), "proc/irq/37/smp_affinity_list", "0\n");
        put(root.path(), "sys/devices/pci0/slot/msi_irqs/37", "msix\n");
        std::fs::create_dir_all(root.path().join("sys/devices/pci0/slot/virtio1")).unwrap();
        std::fs::create_dir_all(root.path().join("sys/class/net/eth0")).unwrap();
        let device = root.path().join("sys/class/net/eth0/device");
        std::os::unix::fs::symlink("../../../devices/pci0/slot/virtio1", device).unwrap();
        let mut facts = Gatherer::at(root.path());
        gather(&mut facts, About::default());
        let told = "37 4 0 virtio1-input.0".to_owned();
        assert_eq!(facts.texts, [("interrupts/eth0".to_owned(), FactText::Found(told))]);
    }
}
