package sqlitefile

import "encoding/binary"

// Kinds of pages of a tree.
const (
	indexNode = 0x02
	tableNode = 0x05
	indexLeaf = 0x0a
	tableLeaf = 0x0d
)

// depth limits a walk: a tree of 2^32 pages is not deeper.
const depth = 20

// node is a page of a tree.
type node struct {
	kind  byte
	data  []byte
	cells []int // where they begin
	right uint32
	whole bool // every pointer stays within the page
}

// parse reads the page's list of cells. want is the kind of leaf of its tree. If the page has
// another kind, it is read as a page of the tree if it is consistent that way. A kind that does not
// exist is read as a leaf.
func parse(n uint32, data []byte, want byte) node {
	at := 0
	if n == 1 {
		at = 100
	}
	p, even := parseAs(data[at], at, data)
	own := [...]byte{indexLeaf, indexNode}
	if want == tableLeaf {
		own = [...]byte{tableLeaf, tableNode}
	}
	if want == 0 || even && (p.kind == own[0] || p.kind == own[1]) {
		return p
	}
	for _, kind := range own {
		if q, even := parseAs(kind, at, data); even {
			q.whole = false
			return q
		}
	}
	switch p.kind {
	case indexNode, tableNode, indexLeaf, tableLeaf:
	default:
		p, _ = parseAs(want, at, data)
		p.whole = false
	}
	return p
}

func parseAs(kind byte, at int, data []byte) (p node, even bool) {
	p = node{kind: kind, data: data, whole: true}
	first := at + 8
	if p.kind == indexNode || p.kind == tableNode {
		p.right = binary.BigEndian.Uint32(data[at+8:])
		first += 4
	}
	cells, even := p.count(at, first)
	for i := range cells {
		if first+2*i+2 > PageSize {
			p.whole = false
			break
		}
		cell := int(binary.BigEndian.Uint16(data[first+2*i:]))
		if cell < first || cell > PageSize-4 {
			p.whole = false
			continue
		}
		p.cells = append(p.cells, cell)
	}
	return p, even
}

// Table calls yield for each row of the table with this root, in the order of their ids as far as
// the tree is sound. If yield is nil, its pages are only marked as reached; see Orphans. whole
// reports that everything was readable.
func (f *File) Table(root uint32, yield func(r Row)) (whole bool) {
	w := &walk{f: f, root: root, leaf: tableLeaf, yield: yield, seen: map[uint32]struct{}{}}
	w.page(root, depth)
	return w.faults == 0
}

// Index calls yield for each entry of the index, or row of the table without row ids, with this
// root.
func (f *File) Index(root uint32, yield func(r Row)) (whole bool) {
	w := &walk{f: f, root: root, leaf: indexLeaf, yield: yield, seen: map[uint32]struct{}{}}
	w.page(root, depth)
	return w.faults == 0
}

// walk is one pass over one tree.
type walk struct {
	f      *File
	root   uint32
	leaf   byte
	yield  func(r Row)
	seen   map[uint32]struct{}
	faults int
	last   int64 // id of the previous row
	begun  bool
}

func (w *walk) page(n uint32, deep int) {
	data, ok := w.f.page(n, nil)
	if _, twice := w.seen[n]; twice || deep == 0 || !ok {
		w.breaks(n)
		return
	}
	p := parse(n, data, w.leaf)
	fits := (p.kind == tableLeaf || p.kind == tableNode) == (w.leaf == tableLeaf)
	if !p.whole || !fits {
		w.breaks(n)
	}
	if !fits {
		return // a page of something else: a pointer is damaged
	}
	// If two trees lead to a page, a pointer of one of them is damaged.
	if other, ok := w.f.seen[n]; ok && other != w.root {
		w.breaks(n)
	}
	w.seen[n], w.f.seen[n] = struct{}{}, w.root
	inner := p.kind == tableNode || p.kind == indexNode
	for _, cell := range p.cells {
		if inner {
			w.page(binary.BigEndian.Uint32(data[cell:]), deep-1)
		}
		if p.kind != tableNode && w.yield != nil {
			w.row(&p, cell)
		}
	}
	if inner {
		w.page(p.right, deep-1)
	}
}

func (w *walk) breaks(n uint32) {
	w.f.broken[n] = struct{}{}
	w.faults++
}

// row reads the row or entry of a cell.
func (w *walk) row(p *node, cell int) {
	r, ok := w.f.read(p, cell)
	if !ok {
		w.f.skipped++
		w.faults++
		return
	}
	// Rows are in the order of their ids. A row out of order is in the place of another row, to
	// which no pointer leads.
	if p.kind == tableLeaf {
		if w.begun && r.ID <= w.last {
			w.f.skipped++
			w.faults++
		}
		w.last, w.begun = r.ID, true
	}
	w.yield(r)
}

func (f *File) read(p *node, cell int) (r Row, ok bool) {
	b := p.data[cell:]
	if p.kind == indexNode {
		b = b[4:]
	}
	size, n := varint(b)
	if n == 0 || size > uint64(f.count)*PageSize {
		return r, false
	}
	b = b[n:]
	most := (PageSize-12)*64/255 - 23
	if p.kind == tableLeaf {
		most = PageSize - 35
		id, n := varint(b)
		if n == 0 {
			return r, false
		}
		r.ID, b = int64(id), b[n:]
	}
	payload, ok := f.payload(b, int(size), most)
	if !ok {
		return r, false
	}
	r.Values, ok = decode(payload)
	return r, ok
}

// payload joins the local part of a cell and its overflow pages.
func (f *File) payload(b []byte, size, most int) ([]byte, bool) {
	if size <= most {
		if size > len(b) {
			return nil, false
		}
		return b[:size], true
	}
	least := (PageSize-12)*32/255 - 23
	local := least + (size-least)%(PageSize-4)
	if local > most {
		local = least
	}
	if local+4 > len(b) {
		return nil, false
	}
	next := binary.BigEndian.Uint32(b[local:])
	all := append(make([]byte, 0, min(size, 1<<20)), b[:local]...)
	buf := make([]byte, PageSize)
	for len(all) < size {
		page, ok := f.page(next, buf)
		if !ok {
			return nil, false
		}
		next = binary.BigEndian.Uint32(page)
		all = append(all, page[4:min(PageSize, 4+size-len(all))]...)
	}
	return all, true
}

// Find looks up one row of a table by its id.
func (f *File) Find(root uint32, id int64) (Row, bool) {
	buf := make([]byte, PageSize)
	n := root
	for range depth {
		data, ok := f.page(n, buf)
		if !ok {
			return Row{}, false
		}
		p := parse(n, data, tableLeaf)
		switch p.kind {
		case tableNode:
			n = p.child(id)
		case tableLeaf:
			return f.findIn(&p, id)
		default:
			return Row{}, false
		}
	}
	return Row{}, false
}

// child returns the page of the row with this id.
func (p *node) child(id int64) uint32 {
	for _, cell := range p.cells {
		if key, n := varint(p.data[cell+4:]); n != 0 && int64(key) >= id {
			return binary.BigEndian.Uint32(p.data[cell:])
		}
	}
	return p.right
}

func (f *File) findIn(p *node, id int64) (Row, bool) {
	for _, cell := range p.cells {
		_, skip := varint(p.data[cell:])
		if key, n := varint(p.data[cell+skip:]); n != 0 && int64(key) == id {
			return f.read(p, cell)
		}
	}
	return Row{}, false
}

// Last returns the highest id in a table, as far as the tree is sound, or 0.
func (f *File) Last(root uint32) (last int64) {
	n := root
	for range depth {
		data, ok := f.page(n, nil)
		if !ok {
			return 0
		}
		p := parse(n, data, tableLeaf)
		if p.kind == tableNode {
			n = p.right
			continue
		}
		for _, cell := range p.cells {
			if r, ok := f.read(&p, cell); ok {
				last = max(last, r.ID)
			}
		}
		return last
	}
	return 0
}

// Orphans calls yield for each row and index entry on pages that no walk has reached, except those
// of the free list. Call it after the walks, and only if one of them met an unusable page: the
// children of that page are then among these.
func (f *File) Orphans(yield func(table bool, r Row)) {
	free := f.freeList()
	buf := make([]byte, PageSize)
	for n := uint32(1); n <= f.count && n != 0; n++ {
		if _, ok := f.seen[n]; ok {
			continue
		}
		if _, ok := free[n]; ok {
			continue
		}
		data, ok := f.page(n, buf)
		if !ok {
			continue
		}
		p := parse(n, data, 0)
		if p.kind != tableLeaf && p.kind != indexLeaf && p.kind != indexNode {
			continue
		}
		for _, cell := range p.cells {
			if r, ok := f.read(&p, cell); ok {
				yield(p.kind == tableLeaf, r)
			}
		}
	}
}

// freeList returns the pages that are free.
func (f *File) freeList() map[uint32]struct{} {
	free := map[uint32]struct{}{}
	first, ok := f.page(1, nil)
	if !ok {
		return free
	}
	for trunk := binary.BigEndian.Uint32(first[32:]); trunk != 0; {
		if _, twice := free[trunk]; twice {
			break
		}
		data, ok := f.page(trunk, nil)
		if !ok {
			break
		}
		free[trunk] = struct{}{}
		count := min(int(binary.BigEndian.Uint32(data[4:])), PageSize/4-2)
		for i := range count {
			free[binary.BigEndian.Uint32(data[8+4*i:])] = struct{}{}
		}
		trunk = binary.BigEndian.Uint32(data)
	}
	return free
}

// Roots reads the schema and returns the root page of each table and index, by name.
func (f *File) Roots() map[string]uint32 {
	roots := map[string]uint32{}
	f.Table(1, func(r Row) {
		if root := r.Int(3); len(r.Values) == 5 && root > 1 && root <= int64(f.count) {
			roots[r.Text(1)] = uint32(root)
		}
	})
	return roots
}
