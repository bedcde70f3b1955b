// The entities of HibernateProgram: authors with books, reviews by whoever, as applications map them.

import jakarta.persistence.CascadeType;
import jakarta.persistence.Column;
import jakarta.persistence.Embeddable;
import jakarta.persistence.Embedded;
import jakarta.persistence.Entity;
import jakarta.persistence.EnumType;
import jakarta.persistence.Enumerated;
import jakarta.persistence.FetchType;
import jakarta.persistence.GeneratedValue;
import jakarta.persistence.GenerationType;
import jakarta.persistence.Id;
import jakarta.persistence.Index;
import jakarta.persistence.JoinColumn;
import jakarta.persistence.ManyToOne;
import jakarta.persistence.OneToMany;
import jakarta.persistence.OrderBy;
import jakarta.persistence.Table;
import jakarta.persistence.Version;
import java.math.BigDecimal;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;

final class Library {
    enum Genre { NOVEL, POETRY, SCIENCE }

    private Library() {}

    @Embeddable
    static class Address {
        @Column(length = 80)
        String street;

        @Column(length = 40)
        String city;

        Address() {}

        Address(String street, String city) {
            this.street = street;
            this.city = city;
        }
    }

    @Entity(name = "Author")
    @Table(name = "author", indexes = @Index(columnList = "born"))
    static class Author {
        @Id
        @GeneratedValue(strategy = GenerationType.SEQUENCE)
        Long id;

        @Column(nullable = false, unique = true, length = 60)
        String name;

        @Column(columnDefinition = "text")
        String bio;

        LocalDate born;

        @Embedded
        Address address;

        @OneToMany(mappedBy = "author", cascade = CascadeType.ALL, orphanRemoval = true)
        @OrderBy("title")
        List<Book> books = new ArrayList<>();

        @Version
        int version;
    }

    @Entity(name = "Book")
    @Table(name = "book", indexes = @Index(columnList = "price, title"))
    static class Book {
        @Id
        @GeneratedValue(strategy = GenerationType.IDENTITY)
        Long id;

        @Column(nullable = false)
        String title;

        @Enumerated(EnumType.STRING)
        Genre genre;

        @Enumerated(EnumType.ORDINAL)
        Genre kept;

        @Column(precision = 10, scale = 2)
        BigDecimal price;

        Integer pages;
        Long sold;
        Short shelf;
        Double rating;
        Float weight;
        Boolean available;
        LocalDate published;
        LocalTime opens;
        LocalDateTime made;
        OffsetDateTime seen;
        byte[] cover;
        UUID code;
        Character mark;

        @ManyToOne(fetch = FetchType.LAZY)
        @JoinColumn(name = "author_id")
        Author author;
    }

    @Entity(name = "Review")
    @Table(name = "review")
    static class Review {
        @Id
        @GeneratedValue(strategy = GenerationType.UUID)
        UUID id;

        @ManyToOne(optional = false)
        Book book;

        @Column(nullable = false)
        String words;

        int stars;
    }
}
