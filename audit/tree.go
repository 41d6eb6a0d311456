package audit

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/rows"
)

// A tile has the hashes of 256 neighbours on one level of the tree. Tiles of level n have the hashes
// of subtrees with 256^n records.
const (
	tileHeight = 8
	tileWidth  = 1 << tileHeight
	hashSize   = len(Hash{})
)

// edge is the right end of a tree, where it grows: the unfinished tile of each level.
type edge struct {
	size  int64
	tiles [][]byte // by level
}

// add appends the hash of a leaf, and calls full with each tile that it completes.
func (e *edge) add(leaf Hash, full func(level int, number int64, hashes []byte)) {
	e.size++
	number := e.size - 1
	for level := 0; ; level++ {
		if level == len(e.tiles) {
			e.tiles = append(e.tiles, make([]byte, 0, tileWidth*hashSize))
		}
		number /= tileWidth
		e.tiles[level] = append(e.tiles[level], leaf[:]...)
		if len(e.tiles[level]) < tileWidth*hashSize {
			return
		}
		full(level, number, e.tiles[level])
		leaf = subtree(e.tiles[level])
		e.tiles[level] = e.tiles[level][:0]
	}
}

// subtree returns the hash of a subtree whose leaves, a power of two, have these hashes.
func subtree(hashes []byte) Hash {
	var stack [tileHeight + 1]Hash
	n := 0
	for i := 0; i*hashSize < len(hashes); i++ {
		h := Hash(hashes[i*hashSize : (i+1)*hashSize])
		top := n
		for k := i; k&1 == 1; k >>= 1 {
			top--
			h = tlog.NodeHash(stack[top], h)
		}
		stack[top] = h
		n = top + 1
	}
	return stack[0]
}

// root returns the hash of the whole tree.
func (e *edge) root() Hash {
	var root Hash
	found := false
	for _, hashes := range e.tiles {
		n := len(hashes) / hashSize
		for end := n; end > 0; { // subtrees from right to left
			width := end & -end
			h := subtree(hashes[(end-width)*hashSize : end*hashSize])
			if found {
				h = tlog.NodeHash(h, root)
			}
			root, found, end = h, true, end-width
		}
	}
	if !found {
		root, _ = tlog.TreeHash(0, nil)
	}
	return root
}

// rows returns the unfinished tiles that have changed since the tree had another size.
func (e *edge) rows(log, since int64) (list []holdfast.Row) {
	size := e.size
	for level := range e.tiles {
		if len(e.tiles[level]) > 0 && size != since {
			list = append(list, &rows.AuditTile{Log: log, Level: int64(level), Number: size / tileWidth, Hashes: slices.Clone(e.tiles[level])})
		}
		size, since = size/tileWidth, since/tileWidth
	}
	return list
}

// tiles reads the tiles of one log. It keeps those that it has read, so it serves one question.
type tiles struct {
	ctx  context.Context //nolint:containedctx // of this question
	from Reader
	log  int64
	kept map[[2]int64][]byte
}

func tilesOf(ctx context.Context, from Reader, log int64) *tiles {
	return &tiles{ctx, from, log, map[[2]int64][]byte{}}
}

// hashes returns n hashes of a tile, from its beginning.
func (t *tiles) hashes(level, number, n int64) ([]byte, error) {
	key := [2]int64{level, number}
	hashes, known := t.kept[key]
	if !known {
		var err error
		if hashes, err = t.from.Tile(t.ctx, t.log, level, number); err != nil {
			return nil, fmt.Errorf("read tile %d of level %d: %w", number, level, err)
		}
		t.kept[key] = hashes
	}
	if int64(len(hashes)) < n*int64(hashSize) {
		return nil, fmt.Errorf("%w: tile %d of level %d has %d of %d hashes", ErrTree, number, level, len(hashes)/hashSize, n)
	}
	return hashes[:n*int64(hashSize)], nil
}

// edge reads the right end of a tree.
func (t *tiles) edge(size int64) (e edge, err error) {
	e.size = size
	for level, n := int64(0), size; n > 0; level, n = level+1, n/tileWidth {
		hashes, err := t.hashes(level, n/tileWidth, n%tileWidth)
		if n%tileWidth > 0 && err != nil {
			return e, err
		}
		e.tiles = append(e.tiles, append(make([]byte, 0, tileWidth*hashSize), hashes...))
	}
	return e, nil
}

// ReadHashes implements tlog.HashReader.
func (t *tiles) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	list := make([]tlog.Hash, len(indexes))
	for i, index := range indexes {
		level, n := tlog.SplitStoredHashIndex(index)
		width := int64(1) << (level % tileHeight)
		from := n * width // place of its first hash on the level of the tile
		hashes, err := t.hashes(int64(level/tileHeight), from/tileWidth, from%tileWidth+width)
		if err != nil {
			return nil, err
		}
		list[i] = subtree(hashes[from%tileWidth*int64(hashSize):])
	}
	return list, nil
}

// root returns the hash of the tree that the first size records have.
func (t *tiles) root(size int64) (Hash, error) {
	root, err := tlog.TreeHash(size, t)
	if err != nil {
		return root, fmt.Errorf("root of %d records: %w", size, err)
	}
	return root, nil
}

// Root returns the hash of the tree that the first size records of a log have, from its tiles.
func Root(ctx context.Context, from Reader, log, size int64) (Hash, error) {
	return tilesOf(ctx, from, log).root(size)
}
