package sqlitefile

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"os"
)

const (
	logHeader   = 32
	frameHeader = 24
	logMagic    = 0x377f0682 // lowest bit set: checksums of big-endian words
)

// Log describes a write-ahead log.
type Log struct {
	// Commits is how many transactions it has, in the generation of its first frame.
	Commits int
	// Unseen is how many of them SQLite would silently leave out, because a checksum in them or
	// before them does not match.
	Unseen int
	// Behind is how many unseen transactions directly follow another unseen one. Such a transaction
	// was written after the one before it was safe on disk.
	Behind int
	// Header means that the header of the file is sound.
	Header bool
	// Pages is the size of the database after the last transaction that SQLite sees; 0 if it sees
	// none.
	Pages uint32
}

// Damaged reports whether transactions are lost that must have been on disk. When a process dies,
// one transaction can be unseen: the one whose sync had not returned. A second one is written only
// after the first is safe. A shorter transaction may replace an earlier, longer one; the rest of
// the longer one does not follow on the shorter one, and does not count.
func (l Log) Damaged() bool { return l.Behind > 0 || !l.Header && l.Commits > 0 }

// ReadLog reads the log at path. A missing file is an empty log.
func ReadLog(path string) (Log, error) {
	f, err := openIfThere(path)
	if err != nil || f == nil {
		return Log{Header: true}, err
	}
	l, err := scanLog(f, func(uint32, int64) {})
	return l, errors.Join(err, f.Close())
}

// scanLog calls yield with the offset of each page that a transaction wrote, oldest first, sound or
// not.
func scanLog(f *os.File, yield func(page uint32, offset int64)) (Log, error) {
	var head [logHeader]byte
	r := bufio.NewReaderSize(io.NewSectionReader(f, 0, 1<<62), 1<<18)
	if _, err := io.ReadFull(r, head[:]); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return Log{Header: true}, nil // nothing was ever written
		}
		return Log{}, err
	}
	var order binary.ByteOrder = binary.LittleEndian
	if binary.BigEndian.Uint32(head[:]) == logMagic|1 {
		order = binary.BigEndian
	}
	sum := checksum{order: order}
	sum.add(head[:24])
	l := Log{Header: sum.is(head[24:]) && binary.BigEndian.Uint32(head[:])&^1 == logMagic && binary.BigEndian.Uint32(head[8:]) == PageSize}
	s := logScan{log: l, sum: sum, last: sum, sound: l.Header}
	if l.Header {
		s.salts = [8]byte(head[16:24])
	}
	return s.run(r, yield)
}

// logScan is one pass over a log.
type logScan struct {
	log   Log
	sum   checksum
	last  checksum // of the previous frame, computed from its content
	salts [8]byte
	sound bool // every frame so far is sound
	joins bool // the first frame of the current transaction follows on the frame before it

	frames []uint32 // pages of the current transaction
	first  int64    // offset of its first frame
}

func (s *logScan) run(r io.Reader, yield func(page uint32, offset int64)) (Log, error) {
	frame := make([]byte, frameHeader+PageSize)
	for at := int64(logHeader); ; at += int64(len(frame)) {
		if _, err := io.ReadFull(r, frame); err != nil {
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				return s.log, nil
			}
			return s.log, err
		}
		if at == logHeader {
			s.first = at
			if !s.log.Header {
				s.salts = [8]byte(frame[8:16])
			}
		}
		salted := [8]byte(frame[8:16]) == s.salts
		s.sum.add(frame[:8])
		s.sum.add(frame[frameHeader:])
		matches := salted && s.sum.is(frame[16:])
		follows := matches || s.follows(frame)
		s.last = s.sum
		// The next frame is checked against this one's own checksum, so that one fault does not
		// count as many.
		s.sum.set(frame[16:])
		s.sound = s.sound && matches
		if !salted && !s.reaches(frame) {
			return s.log, nil // of an older generation, which is in the database already
		}
		if len(s.frames) == 0 {
			s.joins = follows
		}
		s.frames = append(s.frames, binary.BigEndian.Uint32(frame))
		if size := binary.BigEndian.Uint32(frame[4:]); size != 0 {
			s.commit(size, yield)
		}
	}
}

// follows reports whether a frame was written right after the previous one, whose own checksum may
// be damaged.
func (s *logScan) follows(frame []byte) bool {
	sum := s.last
	sum.add(frame[:8])
	sum.add(frame[frameHeader:])
	return sum.is(frame[16:])
}

// reaches reports whether a frame with foreign salts may belong to this generation, with damage in
// the salts themselves: half of the salts match.
func (s *logScan) reaches(frame []byte) bool {
	return [4]byte(frame[8:12]) == [4]byte(s.salts[:4]) || [4]byte(frame[12:16]) == [4]byte(s.salts[4:])
}

func (s *logScan) commit(size uint32, yield func(page uint32, offset int64)) {
	s.log.Commits++
	if s.sound {
		s.log.Pages = size
	} else {
		s.log.Unseen++
		if s.log.Unseen > 1 && s.joins {
			s.log.Behind++
		}
	}
	for i, page := range s.frames {
		if page != 0 && (page <= size || !s.sound) && page < 1<<30 {
			yield(page, s.first+int64(i)*(frameHeader+PageSize)+frameHeader)
		}
	}
	s.first += int64(len(s.frames)) * (frameHeader + PageSize)
	s.frames = s.frames[:0]
}

// checksum is the checksum of the log: cumulative over its frames.
type checksum struct {
	order binary.ByteOrder
	a, b  uint32
}

func (c *checksum) add(p []byte) {
	a, b := c.a, c.b
	if c.order == binary.LittleEndian { // the usual case, without a call per word
		for ; len(p) >= 8; p = p[8:] {
			a += binary.LittleEndian.Uint32(p) + b
			b += binary.LittleEndian.Uint32(p[4:]) + a
		}
	}
	for ; len(p) >= 8; p = p[8:] {
		a += c.order.Uint32(p) + b
		b += c.order.Uint32(p[4:]) + a
	}
	c.a, c.b = a, b
}

func (c *checksum) is(p []byte) bool {
	return c.a == binary.BigEndian.Uint32(p) && c.b == binary.BigEndian.Uint32(p[4:])
}

func (c *checksum) set(p []byte) {
	c.a, c.b = binary.BigEndian.Uint32(p), binary.BigEndian.Uint32(p[4:])
}
