package sqlitefile

import (
	"encoding/binary"
	"slices"
)

// count returns how many cells the page has, and whether the page is consistent: each byte after
// the list of cells and the gap after it belongs to one cell or to a free block, or is counted as a
// fragment. One byte of these counters may be damaged. If it is the number of cells, the number
// that makes the page consistent is right: deleted cells remain in the list, but overlap others. If
// it is the number of fragments, the cells still do not overlap. A damaged pointer leads into
// another cell; the number of cells is then right.
func (p *node) count(at, first int) (cells int, even bool) {
	said := int(binary.BigEndian.Uint16(p.data[at+3:]))
	content := int(binary.BigEndian.Uint16(p.data[at+5:]))
	if content == 0 || content > PageSize {
		return said, false
	}
	taken, ok := p.freeBlocks(at, content)
	if !ok {
		return said, false
	}
	left := PageSize - content - int(p.data[at+7])
	for _, block := range taken {
		left -= block.size
	}
	all, saidApart := -1, false
	for n := 0; n <= said || left >= 0; n++ {
		if n == said {
			saidApart = apart(taken)
		}
		if left == 0 && all < 0 && apart(taken) {
			all = n
		}
		if first+2*n+2 > content {
			break
		}
		cell := int(binary.BigEndian.Uint16(p.data[first+2*n:]))
		if cell < content || cell > PageSize-4 {
			break
		}
		taken = append(taken, extent{cell, p.size(cell)})
		left -= p.size(cell)
	}
	if all < 0 || all < said && saidApart {
		return said, false
	}
	return all, true
}

// extent is a section of a page.
type extent struct{ at, size int }

// apart reports whether no two extents share a byte. A damaged pointer leads into another cell.
func apart(list []extent) bool {
	list = slices.SortedFunc(slices.Values(list), func(a, b extent) int { return a.at - b.at })
	for i := 1; i < len(list); i++ {
		if list[i].at < list[i-1].at+list[i-1].size {
			return false
		}
	}
	return true
}

// freeBlocks returns the blocks in the page's free list.
func (p *node) freeBlocks(at, content int) (list []extent, ok bool) {
	for block := int(binary.BigEndian.Uint16(p.data[at+1:])); block != 0; {
		if block < content || block > PageSize-4 {
			return nil, false
		}
		next, size := int(binary.BigEndian.Uint16(p.data[block:])), int(binary.BigEndian.Uint16(p.data[block+2:]))
		if size < 4 || next != 0 && next <= block {
			return nil, false
		}
		list = append(list, extent{block, size})
		block = next
	}
	return list, true
}

// size returns how many bytes of the page a cell takes.
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
