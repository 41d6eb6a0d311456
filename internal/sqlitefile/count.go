package sqlitefile

import "encoding/binary"

// count is how many cells the page has. By its own account every byte behind the
// list of cells and the gap after it belongs to a cell, to a free block, or is
// counted as a fragment: where that does not come out even, the number itself
// may be damaged, and the one that makes it even is right. Cells that were
// deleted are left in the list and would be taken for others.
func (p *node) count(at, first int) int {
	said := int(binary.BigEndian.Uint16(p.data[at+3:]))
	content := int(binary.BigEndian.Uint16(p.data[at+5:]))
	if content == 0 || content > PageSize {
		return said
	}
	free, ok := p.freeBytes(at, content)
	if !ok {
		return said
	}
	want, sum := PageSize-content-free, 0
	even := -1
	for n := 0; first+2*n+2 <= content; n++ {
		if sum == want && (even < 0 || n == said) {
			even = n
		}
		if sum > want {
			break
		}
		cell := int(binary.BigEndian.Uint16(p.data[first+2*n:]))
		if cell < content || cell > PageSize-4 {
			if n < said {
				return said // a pointer is damaged, and what is said of it
			}
			break
		}
		sum += p.size(cell)
	}
	if even < 0 {
		return said
	}
	return even
}

// freeBytes are those of the free blocks and fragments.
func (p *node) freeBytes(at, content int) (sum int, ok bool) {
	sum = int(p.data[at+7])
	for block := int(binary.BigEndian.Uint16(p.data[at+1:])); block != 0; {
		if block < content || block > PageSize-4 {
			return 0, false
		}
		next, size := int(binary.BigEndian.Uint16(p.data[block:])), int(binary.BigEndian.Uint16(p.data[block+2:]))
		if size < 4 || next != 0 && next <= block {
			return 0, false
		}
		sum += size
		block = next
	}
	return sum, true
}

// size is how many bytes of the page a cell takes.
func (p *node) size(cell int) int {
	b := p.data[cell:]
	head := 0
	if p.kind == indexNode || p.kind == tableNode {
		head = 4
	}
	if head+1 > len(b) {
		return PageSize
	}
	size, n := varint(b[head:])
	head += n
	if p.kind == tableNode {
		return max(head, 4)
	}
	most, least := (PageSize-12)*64/255-23, (PageSize-12)*32/255-23
	if p.kind == tableLeaf {
		most = PageSize - 35
		if head > len(b) {
			return PageSize
		}
		_, n := varint(b[head:])
		head += n
	}
	if size > uint64(PageSize)*1<<20 {
		return PageSize
	}
	local := int(size)
	if local > most {
		if local = least + (local-least)%(PageSize-4); local > most {
			local = least
		}
		local += 4
	}
	return max(head+local, 4)
}
