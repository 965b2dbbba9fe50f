package dev.stormoperator.workloads;

import java.io.IOException;
import java.io.Serializable;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The rate of a source over time: its profile since submission, or the one in a control file since that was written.
 *
 * <p>The file is looked at once a second and holds a profile in the same grammar; while it is absent or wrong the rate
 * stays as it is.
 */
final class Rate implements Serializable {

    private static final long serialVersionUID = 1L;
    private static final long MILLIS_BETWEEN_LOOKS = 1_000;
    private static final Logger LOG = LoggerFactory.getLogger(Rate.class);

    private String file;
    private RateProfile profile;
    private long startedAtMillis;
    private transient FileTime seen;
    private transient long lookedAtMillis;

    /** A rate whose profile begins now. */
    Rate(RateProfile profile, long nowMillis) {
        this.profile = profile;
        this.startedAtMillis = nowMillis;
    }

    /** Follows the control file at {@code path}; null: none. */
    void follow(String path) {
        file = path;
    }

    /** Tuples a second of all tasks together. */
    double perSecond(long nowMillis) {
        // Either way: a clock that was set back would else have to come to where it was before anybody looks again.
        if (file != null && Math.abs(nowMillis - lookedAtMillis) >= MILLIS_BETWEEN_LOOKS) {
            lookedAtMillis = nowMillis;
            look(Path.of(file));
        }
        return profile.perSecond(Math.max(0, nowMillis - startedAtMillis) / 1_000.0);
    }

    private void look(Path path) {
        try {
            FileTime modified = Files.getLastModifiedTime(path);
            if (modified.equals(seen)) {
                return;
            }
            seen = modified;
            profile = RateProfile.parse(file, Files.readString(path));
            startedAtMillis = modified.toMillis();
            LOG.info("Rate is now {}, from {}", profile, file);
        } catch (NoSuchFileException e) {
            LOG.debug("No {}: the rate stays {}", file, profile);
        } catch (IOException | IllegalArgumentException e) {
            LOG.warn("The rate stays {}: {}", profile, e.toString());
        }
    }
}
